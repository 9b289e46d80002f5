"""Acts on the shared cluster, each in a minute of its own, because tables are by the minute.

The lines of an act are shipped with their times moved, and the snapshot taken in it has one of that
minute.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import Producer

from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.snapshots import take

from .drive import logged

MINUTE_MS = 60_000
SECTIONS = ("brokers", "topics", "replicas", "configs", "settings")
Line = dict[str, Any]


@dataclass
class Acts:
    """The acts so far: when each began and ended by this machine's clock, and its minute."""

    cluster: LocalCluster
    conf: Conf
    first_minutes_ago: int = 3
    past: list[tuple[int, int, int]] = field(default_factory=list)

    @contextmanager
    def act(self, minutes_later: int = 1, sections: tuple[str, ...] = SECTIONS) -> Iterator[None]:
        """One so long after the last; answers of brokers until the snapshot are part of it."""
        began_ms = now_ms()
        first_ms = (began_ms // MINUTE_MS - self.first_minutes_ago) * MINUTE_MS
        minute_ms = self.past[-1][2] + minutes_later * MINUTE_MS if self.past else first_ms
        yield
        if sections:
            at = datetime.fromtimestamp(minute_ms / 1_000 + 59, UTC)
            take.take(self.conf, at, lambda _: None, sections)
        self.past.append((began_ms, now_ms(), minute_ms))
        assert self.past[-1][1] - began_ms < MINUTE_MS

    def ship(self, topic: str, is_ours: Callable[[Line], bool]) -> None:
        """Write the request log of the acts to a topic, as far as it is ours."""
        ship(self.cluster, topic, self._lines(is_ours))

    def _lines(self, is_ours: Callable[[Line], bool]) -> Iterator[Line]:
        for line in logged(self.cluster):
            for began_ms, ended_ms, minute_ms in self.past:
                if began_ms <= line["ts"] < ended_ms and is_ours(line["r"]):
                    yield line | {"ts": line["ts"] - began_ms + minute_ms}


def ship(cluster: LocalCluster, topic: str, lines: Iterator[Line]) -> None:
    """Write lines to a topic that ingest reads."""
    producer = Producer(cluster.librdkafka_properties("admin") | {"enable.metrics.push": False})
    for line in lines:
        producer.produce(topic, json.dumps(line).encode())
        producer.poll(0)
    assert producer.flush(30) == 0


def now_ms() -> int:
    return time.time_ns() // 1_000_000
