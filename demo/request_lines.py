"""Lines of the brokers' request logs: read back, and shipped with other times.

Tables are by the minute. What takes minutes is played in acts of seconds: the lines of each act are
shipped with their times moved into a minute of its own.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Producer

from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.rotated_log import RotatedLog
from quotaflow.demo.shipper import MAX_LINE_BYTES
from quotaflow.pipelines.errors import KafkaError

MINUTE_MS = 60_000
LOGGED_AFTER_S = 0.3
"""A broker logs a request once its answer is on the way: a client has it earlier."""

Line = dict[str, Any]
"""`ts` is the time in epoch milliseconds, `broker` the broker's id, `r` the request."""


@dataclass(frozen=True, slots=True)
class Act:
    """When it began and ended by this machine's clock, and the minute that its lines get."""

    began_ms: int
    ended_ms: int
    minute_ms: int


@dataclass
class Acts:
    """The acts so far; the first one is moved so many minutes into the past."""

    first_minutes_ago: int
    past: list[Act] = field(default_factory=list)

    @contextmanager
    def act(self, minutes_later: int = 1) -> Iterator[int]:
        """One so long after the last, of less than a minute. Gives the minute of its lines."""
        began_ms = now_ms()
        if self.past:
            minute_ms = self.past[-1].minute_ms + minutes_later * MINUTE_MS
        else:
            minute_ms = (began_ms // MINUTE_MS - self.first_minutes_ago) * MINUTE_MS
        yield minute_ms
        time.sleep(LOGGED_AFTER_S)
        self.past.append(Act(began_ms, now_ms(), minute_ms))
        if self.past[-1].ended_ms - began_ms >= MINUTE_MS:
            raise TimeoutError("an act of a minute or more does not fit into a minute")

    def lines(self, cluster: LocalCluster, is_ours: Callable[[Line], bool]) -> Iterator[Line]:
        """The request log of the acts, as far as requests are ours, with the times moved."""
        for line in logged(cluster):
            for act in self.past:
                if act.began_ms <= line["ts"] < act.ended_ms and is_ours(line["r"]):
                    yield line | {"ts": line["ts"] - act.began_ms + act.minute_ms}


def logged(cluster: LocalCluster) -> Iterator[Line]:
    """Every line of every broker so far."""
    for path in cluster.request_logs.values():
        log = RotatedLog(path, MAX_LINE_BYTES)
        for line in log.lines():
            if line is None:
                raise KafkaError(f"{path} has a line of more than {MAX_LINE_BYTES} bytes")
            yield json.loads(line)
        log.close()


def ship(cluster: LocalCluster, topic: str, lines: Iterator[Line]) -> None:
    """Write lines to a topic that ingest reads."""
    producer = Producer(cluster.librdkafka_properties("shipper") | {"enable.metrics.push": False})
    for line in lines:
        producer.produce(topic, json.dumps(line).encode())
        producer.poll(0)
    if left := producer.flush(30):
        raise KafkaError(f"{topic}: {left} lines not acknowledged")


def now_ms() -> int:
    """This machine's clock."""
    return time.time_ns() // 1_000_000
