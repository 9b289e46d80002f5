"""Clients that are at work until the demo's last tables: a plan's changes show in what they do."""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from threading import Event
from typing import Any

from confluent_kafka import Consumer, ShareConsumer

from quotaflow.demo import traffic_ids
from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.errors import KafkaError

IDLE, BUSY, USER = "rdk-idle-ivan", "rdk-busy-ivan", "ivan"
TOPIC = "exports"
"""It has one partition: of two consumers of a group one has nothing to do."""

SHARING, SHARING_USER, SHARED_TOPIC = "rdk-parcels-grace", "grace", "orders"

IDLE_METRIC = "org.apache.kafka.consumer.coordinator.assigned.partitions"
USUAL_INTERVAL_MS = 2_000

_POLL_S = 0.1
_REFUSED_S = 0.02
_TIMEOUT_S = 5.0


class LateClients:
    """Two consumers of one group, a member of a share group, and frank, who takes more ids."""

    def __init__(self, cluster: LocalCluster, pool: ThreadPoolExecutor, stop: Event) -> None:
        self._cluster = cluster
        self._pool = pool
        self._stop = stop
        self._running: list[Future[None]] = []

    def start_consumers(self) -> None:
        """Two consumers in one group, and one in a share group (KIP-932)."""
        self._running.append(self._pool.submit(self._consume))
        self._running.append(self._pool.submit(self._share))

    def start_frank(self) -> None:
        """New transactional ids, as in the traffic, at the same pace."""
        self._running.append(self._pool.submit(self._take_ids))

    def end(self) -> None:
        """Stop and wait for all. Raises what ended one of them early."""
        self._stop.set()
        for client in self._running:
            client.result()

    def _consume(self) -> None:
        login: dict[str, Any] = {
            **self._cluster.librdkafka_properties(USER),
            "group.id": "ivan-exports",
            "auto.offset.reset": "earliest",
        }
        with (
            closing(Consumer(login | {"client.id": BUSY})) as busy,
            closing(Consumer(login | {"client.id": IDLE})) as idle,
        ):
            busy.subscribe([TOPIC])
            while not busy.assignment() and not self._stop.is_set():
                busy.poll(_POLL_S)
            idle.subscribe([TOPIC])
            while not self._stop.is_set():
                busy.poll(_POLL_S)
                idle.poll(_POLL_S)

    def _share(self) -> None:
        login: dict[str, Any] = {
            **self._cluster.librdkafka_properties(SHARING_USER),
            "client.id": SHARING,
            "group.id": "grace-parcels",
        }
        with closing(ShareConsumer(login)) as member:
            member.subscribe([SHARED_TOPIC])
            while not self._stop.is_set():
                member.poll(_POLL_S)

    def _take_ids(self) -> None:
        for checkpoint in self._seconds():
            for subtask in range(traffic_ids.SUBTASKS):
                # The broker delays or closes a connection over the rate of its address.
                with suppress(OSError, KafkaError):
                    traffic_ids.at_its_coordinator(
                        self._cluster, "frank", "raw-ledger-frank", f"late-{subtask}-{checkpoint}"
                    )
                if self._stop.wait(_REFUSED_S):
                    return

    def _seconds(self) -> Iterator[int]:
        """0, 1, ... until the end, at most one each second."""
        began_s, second = time.monotonic(), 0
        while not self._stop.wait(max(0.0, began_s + second - time.monotonic())):
            yield second
            second = max(second + 1, int(time.monotonic() - began_s))


@contextmanager
def at_work(cluster: LocalCluster) -> Iterator[LateClients]:
    """None of them outlives the block."""
    stop = Event()
    with ThreadPoolExecutor(3, "late") as pool:
        try:
            yield LateClients(cluster, pool, stop)
        finally:
            stop.set()
