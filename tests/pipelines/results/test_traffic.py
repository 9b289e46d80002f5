"""Bytes of PRODUCE and FETCH lines, by minute, client and topic."""

from datetime import UTC, datetime, timedelta
from typing import Any

from quotaflow.pipelines.results import traffic

from ...rule_rows import compute

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def request(second: float, api: str, *partitions: dict[str, Any], **others: Any) -> dict[str, Any]:
    time = NOON + timedelta(seconds=second)
    row = {"cluster_id": "c", "broker_id": 1, "principal": "User:alice", "client_id": "orders"}
    row |= {"event_time": time, "record_time": time, "api": api, "partitions": list(partitions)}
    return row | others


def moved(topic: str, size: int | None, error_code: int | None = 0) -> dict[str, Any]:
    return {"topic_id": topic, "bytes": size, "error_code": error_code}


REQUEST_ROWS = [
    request(1, "PRODUCE", moved("a", 10), moved("a", 20), moved("b", 40)),
    request(59, "PRODUCE", moved("a", 80)),
    request(60, "PRODUCE", moved("a", 160)),
    request(61, "PRODUCE", moved("a", 1, error_code=3), moved("a", 2, error_code=None)),
    request(2, "FETCH", moved("a", 5), moved("b", 0), moved("c", None), rack_id="az-1"),
    request(3, "FETCH", moved("a", 7)),
    request(4, "FETCH", moved("a", 9_000), replica_id=2),
    request(5, "METADATA", moved("a", 9_000)),
    request(6, "FETCH", {"topic": "named", "bytes": 3, "error_code": 0}, client_id=None),
]
EXPECTED = [
    (0, "orders", "consumed", "a", "az-1", 5),
    (0, "orders", "consumed", "a", None, 7),
    (0, "orders", "produced", "a", None, 110),
    (0, "orders", "produced", "b", None, 40),
    (0, None, "consumed", "named", None, 3),
    (1, "orders", "produced", "a", None, 162),
]


def test_bytes_that_moved() -> None:
    rows = compute(traffic.result(), requests=REQUEST_ROWS)
    got = [
        (
            (row["event_time"] - NOON) // timedelta(minutes=1),
            row["client_id"],
            row["direction"],
            row["topic_id"] or row["topic"],
            row["client_rack"],
            row["bytes"],
        )
        for row in rows
    ]
    assert sorted(got, key=str) == sorted(EXPECTED, key=str)
    assert {row["event_date"] for row in rows} == {NOON.date()}
