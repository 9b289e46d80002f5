"""A move under a throttle that is less than what is written meanwhile, reported while it goes on.

The tables are by the minute, so all lines are moved back in time, by as much as makes the request
come shortly before a minute begins: all of that minute is written then.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from threading import Event, Thread
from typing import Any

from kafka import KafkaAdminClient

from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.replica_moves import Throttled, replicas
from quotaflow.demo.request_lines import MINUTE_MS, Line, logged, now_ms, ship
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.jobs import runner
from quotaflow.pipelines.snapshots import take

from . import quiet_clients
from .cluster_actions import SECTIONS
from .move_scene import ADMIN_APIS
from .rack_scene import write
from .readers import await_so
from .tables_read import query

PREFIX = "slow-moves-"
TOPIC, LOG = f"{PREFIX}topic", f"{PREFIX}log"
RATE, WRITTEN = 1_100_000, 2_200_000
"""Bytes per second that the throttle lets through, and that clients write."""
CAPACITY = 20_000_000
FILL_RECORDS, RECORD_BYTES = 7_500, 20_000
"""What is there when the move begins: enough to go on while tables are made."""
ONE_BY_ONE = {"batch.size": RECORD_BYTES}
"""Where an answer is full it ends amid a batch, and followers throw away what is cut."""
JOBS = ["ingest_request_log", "fetches", "request_results", "fetch_results"]

_BEFORE_A_MINUTE_MS = 10_000
_EVERY_S = 0.05
_TIMEOUT_S = 400.0


@dataclass
class Move:
    """What tables know of the move: lines up to `until_ms`, told so much later than they were."""

    cluster: LocalCluster
    conf: Conf
    throttled: Throttled
    since_ms: int
    until_ms: int

    @property
    def moved_ms(self) -> int:
        return -((self.since_ms + _BEFORE_A_MINUTE_MS) % MINUTE_MS)

    def go_on(self, until_ms: int | None = None, *, with_snapshot: bool = False) -> None:
        """Tell what brokers answered up to then, or now, and make tables of it."""
        since_ms, self.until_ms = self.until_ms, until_ms or now_ms()
        ship(self.cluster, LOG, self._lines(since_ms))
        if with_snapshot:
            at = datetime.fromtimestamp((self.until_ms + self.moved_ms) / 1_000, UTC)
            take.take(self.conf, at, lambda _: None, (*SECTIONS, "client_quotas"))
        runner.run(self.conf, JOBS, None, lambda _: None)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return query(self.conf, sql)

    def move(self) -> dict[str, Any]:
        """The row of `reassignments`."""
        (row,) = self.rows("SELECT * FROM reassignments")
        return row

    def _lines(self, since_ms: int) -> Iterator[Line]:
        follower = f"broker-{self.throttled.follower}-"
        for line in logged(self.cluster):
            header = line["r"]["requestHeader"]
            client_id, api = header["clientId"] or "", header["requestApiKeyName"]
            is_ours = client_id.startswith((PREFIX, follower)) or api in ADMIN_APIS
            if since_ms <= line["ts"] < self.until_ms and (is_ours or api == "ALTER_PARTITION"):
                yield line | {"ts": line["ts"] + self.moved_ms}


@contextmanager
def started(cluster: LocalCluster, conf: Conf, throttled: Throttled) -> Iterator[Move]:
    """A topic with records at its leader, a throttle, and clients that write: all but the move."""
    cluster.create_topics([LOG], 1, 1)
    assigned = {TOPIC: {"assignments": {0: [throttled.leader]}}}
    with cluster.admin() as admin:
        admin.create_topics(assigned, wait_for_metadata=True)
        write(cluster, PREFIX, TOPIC, FILL_RECORDS, RECORD_BYTES, acks=1, **ONE_BY_ONE)
        stop = Event()
        writer = Thread(target=_write, args=(cluster, stop))
        began_ms = now_ms()
        writer.start()
        try:
            throttled.set(admin, RATE)
            yield Move(cluster, conf, throttled, began_ms, began_ms)
        finally:
            stop.set()
            writer.join()
            throttled.set(admin, None)


def await_end(admin: KafkaAdminClient, throttled: Throttled) -> None:
    """Until the move is over."""
    await_so(lambda: replicas(admin, TOPIC) == [throttled.follower], _TIMEOUT_S)


def _write(cluster: LocalCluster, stop: Event) -> None:
    """As much each second as WRITTEN says."""
    settings = {"client_id": f"{PREFIX}writer", "acks": 1} | ONE_BY_ONE
    producer = quiet_clients.producer(cluster, "alice", **settings)
    record, began_s, written = Random(TOPIC).randbytes(RECORD_BYTES), time.monotonic(), 0
    while not stop.wait(_EVERY_S):
        while written < WRITTEN * (time.monotonic() - began_s):
            producer.produce(TOPIC, record, partition=0)
            producer.poll(0)
            written += RECORD_BYTES
    assert producer.flush(30) == 0
