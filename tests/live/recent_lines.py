"""Recorded lines in a cluster's topic, as if its brokers had just written them."""

import re
import time
from pathlib import Path
from typing import Any

from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC
from quotaflow.demo.cluster import LocalCluster

from . import quiet_clients

_TIMED = re.compile(rb'^{"ts":(\d+)')
_DAYS_MS = 2 * 86_400_000


def send(cluster: LocalCluster, folder: Path) -> None:
    """Lines of a folder's files; those with a time also as of two days ago.

    Of these every second one has a record of that time, and the others are shipped late.
    """
    recorded = [
        line for file in sorted(folder.glob("*.jsonl")) for line in file.read_bytes().splitlines()
    ]
    timed = [line for line in recorded if _TIMED.match(line)]
    newest = max(int(match[1]) for line in timed if (match := _TIMED.match(line)))
    later_ms = int(time.time() * 1e3) - newest
    then_ms = int(time.time() * 1e3) - _DAYS_MS
    lines = [
        (_later(line, later_ms - _DAYS_MS), then_ms if number % 2 else 0)
        for number, line in enumerate(timed)
    ]
    lines += [(_later(line, later_ms), 0) for line in recorded]
    failed: list[Any] = []
    producer = quiet_clients.producer(cluster, "admin")
    for line, record_ms in lines:
        producer.produce(
            *(REQUEST_LOG_TOPIC, line),
            headers={"broker_id": b"1"},
            # 0 is now.
            timestamp=record_ms,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert producer.flush(60) == 0
    assert failed == []


def _later(line: bytes, by_ms: int) -> bytes:
    return _TIMED.sub(lambda match: b'{"ts":%d' % (int(match[1]) + by_ms), line)
