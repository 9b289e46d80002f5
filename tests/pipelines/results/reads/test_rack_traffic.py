"""Bytes between racks, from requests and the racks a snapshot saw."""

from typing import Any

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.results.declared import result_of

from ....rows import Row, at, minute
from .replica_rows import RACKS, broker, computed

BROKER_ROWS = [broker(1, "az-a"), broker(2, "az-b"), broker(3, None, 300)]


def request(second: float, api: str, broker_id: int, *sizes: int | None, **others: Any) -> Row:
    row = {"event_time": at(second), "record_time": at(second), "api": api}
    row |= {"broker_id": broker_id, "client_address": "10.9.0.1"}
    return row | {"partitions": [{"bytes": size, "error_code": 0} for size in sizes]} | others


def answered(*partitions: tuple[int | None, int | None]) -> dict[str, Any]:
    return {"partitions": [{"bytes": size, "error_code": code} for size, code in partitions]}


REFUSED = answered((9_000, 6))
REQUEST_ROWS = [
    request(1, "PRODUCE", 1, 10, 20, None),
    request(2, "PRODUCE", 1, 40, client_address="10.2.0.1"),
    request(3, "PRODUCE", 1, **REFUSED),
    request(4, "FETCH", 1, 100, rack_id="az-b"),
    request(5, "FETCH", 2, 200, 0, rack_id="az-b"),
    request(6, "FETCH", 1, 400, client_address="10.2.0.1"),
    request(7, "FETCH", 3, 800, rack_id="az-b"),
    request(8, "FETCH", 1, 0, rack_id="az-b"),
    request(9, "FETCH", 1, 1_000, replica_id=2, client_address="10.2.0.1"),
    request(10, "FETCH", 1, 2_000, replica_id=2),
    request(11, "FETCH", 1, 4_000, replica_id=3),
    request(61, "FETCH", 1, 7, replica_id=2),
    request(12, "METADATA", 1, 5),
    request(13, "PRODUCE", 2, **answered((9_000, 6), (20, 0), (30, None), (9_000, -1))),
    request(14, "PRODUCE", 3, **answered((5, None), (-1, None), (None, None))),
    request(15, "PRODUCE", 3, **answered((0, None), (-1, None))),
]
EXPECTED = [
    (0, "produced", None, False, 1, 1, 30, None),
    (0, "produced", "az-b", True, 1, 1, 40, 40),
    (0, "consumed", "az-b", False, 1, 1, 100, 100),
    (0, "consumed", "az-b", False, 2, 1, 200, 0),
    (0, "consumed", "az-b", True, 1, 1, 400, 400),
    (0, "consumed", "az-b", False, 3, 1, 800, None),
    (0, "replicated", "az-b", False, 1, 2, 3_000, 3_000),
    (0, "replicated", None, False, 1, 1, 4_000, None),
    (0, "produced", None, False, 2, 1, 50, None),
    (0, "produced", None, False, 3, 1, 5, None),
    (1, "replicated", "az-b", False, 1, 1, 7, 7),
]


def test_bytes_between_racks() -> None:
    rows = computed(
        result_of("rack_traffic", Conf(racks=RACKS)), requests=REQUEST_ROWS, brokers=BROKER_ROWS
    )
    columns = ("client_rack", "is_rack_inferred", "broker_id", "requests", "bytes")
    got = [
        (minute(row), row["flow"], *(row[name] for name in columns), row["cross_rack_bytes"])
        for row in rows
    ]
    assert sorted(got, key=str) == sorted(EXPECTED, key=str)
    assert {row["broker_id"]: row["broker_rack"] for row in rows} == {1: "az-a", 2: "az-b", 3: None}
    assert {row["event_date"] for row in rows} == {at(0).date()}
