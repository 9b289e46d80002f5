"""librdkafka consumers that read side by side with a test."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from quotaflow.demo.cluster import LocalCluster

_TIMEOUT_S = 300.0
_MOST = 16


class Readers:
    """Consumers of whole topics from their beginning, each in a thread of its own, as alice."""

    def __init__(self, cluster: LocalCluster, pool: ThreadPoolExecutor) -> None:
        self._login = cluster.librdkafka_properties("alice")
        self._pool = pool
        self._running: dict[str, tuple[Event, Future[None]]] = {}
        self._counts: Counter[str] = Counter()

    @classmethod
    @contextmanager
    def on_cluster(cls, cluster: LocalCluster) -> Iterator[Self]:
        """None of them outlives the block."""
        with ThreadPoolExecutor(_MOST, "readers") as pool:
            readers = cls(cluster, pool)
            try:
                yield readers
            finally:
                readers.stop(*readers._running)

    def start(self, client_id: str, topic: str, partitions: int, **config: object) -> None:
        """Start one; `config` has _ where Kafka's names have dots."""
        properties: dict[str, object] = {
            **self._login,
            **{name.replace("_", "."): value for name, value in config.items()},
            "client.id": client_id,
            "group.id": client_id,
            "enable.auto.commit": False,
            "enable.metrics.push": False,
        }
        stop = Event()
        assigned = [TopicPartition(topic, n, OFFSET_BEGINNING) for n in range(partitions)]
        done = self._pool.submit(self._read, client_id, properties, assigned, stop)
        self._running[client_id] = stop, done

    def await_count(self, client_id: str, count: int) -> None:
        """Until it has read at least so many records."""
        _, done = self._running[client_id]
        await_so(lambda: self._counts[client_id] >= count or done.done())
        if done.done():
            done.result()

    def stop(self, *client_ids: str) -> None:
        """Close these, and wait until they are."""
        ended = [self._running.pop(client_id) for client_id in client_ids]
        for stop, _ in ended:
            stop.set()
        for _, done in ended:
            done.result()

    def _read(
        self,
        client_id: str,
        properties: dict[str, object],
        assigned: list[TopicPartition],
        stop: Event,
    ) -> None:
        consumer = Consumer(properties)
        consumer.assign(assigned)
        while not stop.is_set():
            messages = consumer.consume(500, 0.1)
            self._counts[client_id] += sum(message.error() is None for message in messages)
        consumer.close()


def await_so(condition: Callable[[], bool], timeout_s: float = _TIMEOUT_S) -> None:
    """Until it is so."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.2)
