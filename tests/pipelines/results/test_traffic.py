"""Bytes of PRODUCE and FETCH lines, by minute, client and topic."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.results.declared import result_of

from ... import rows
from ...rows import Row, at, minute
from ...rule_rows import compute

RACKS = {"10.2.0.0/16": "az-2"}


def request(second: float, api: str, *partitions: Row, **others: Any) -> Row:
    return rows.request(
        second, api, **{"client_address": None, "partitions": [*partitions]} | others
    )


def moved(topic: str, size: int | None, error_code: int | None = 0) -> Row:
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
    (0, "orders", "consumed", "a", None, "az-1", 5),
    (0, "orders", "consumed", "a", None, None, 7),
    (0, "orders", "produced", "a", None, None, 110),
    (0, "orders", "produced", "b", None, None, 40),
    (0, None, "consumed", None, "named", None, 3),
    (1, "orders", "produced", "a", None, None, 162),
]


def test_bytes_that_moved() -> None:
    traffic = compute(result_of("traffic"), requests=REQUEST_ROWS)
    names = ("client_id", "direction", "topic_id", "topic", "client_rack", "bytes")
    got = [(minute(row), *(row[name] for name in names)) for row in traffic]
    assert sorted(got, key=str) == sorted(EXPECTED, key=str)
    assert {row["event_date"] for row in traffic} == {at(0).date()}


def broker(broker_id: int, rack: str | None) -> Row:
    return rows.row("brokers", 3_600, {}, broker_id=broker_id, rack=rack)


def test_a_rack_is_that_of_the_request_or_of_the_address() -> None:
    traffic = compute(
        result_of("traffic", Conf(racks=RACKS)),
        requests=[
            request(1, "FETCH", moved("a", 1), rack_id="az-1", client_address="10.2.0.9"),
            request(1, "FETCH", moved("a", 2), client_address="10.2.0.9"),
            request(1, "PRODUCE", moved("a", 4), client_address="10.2.0.9"),
            request(1, "PRODUCE", moved("a", 8), client_address="10.3.0.9"),
            request(1, "PRODUCE", moved("a", 16), client_address="10.2.0.9", broker_id=2),
        ],
        brokers=[broker(1, "az-1"), broker(2, None)],
    )
    names = ("bytes", "client_rack", "is_rack_inferred", "broker_rack", "cross_rack_bytes")
    assert sorted(tuple(row[name] for name in names) for row in traffic) == [
        (1, "az-1", False, "az-1", 0),
        (2, "az-2", True, "az-1", 2),
        (4, "az-2", True, "az-1", 4),
        (8, None, False, "az-1", None),
        (16, "az-2", True, None, None),
    ]


PATTERNS = [r"(?:warpstream|diskless)_az=([^,;& ]+)", "^rack-(.*?)-"]
CLAIMS = {
    "orders,warpstream_az=az-1": "az-1",
    "diskless_az=az-2&x=1": "az-2",
    "rack-az3-diskless_az=az-1": "az-1",
    "rack-az3-reader": "az3",
    "rack--reader": None,
    "warpstream_az=": None,
    "x" * 490 + "diskless_az=az-1": None,
    "diskless_az=" + "r" * 300: "r" * 100,
    "orders": None,
    None: None,
}


def test_a_client_id_claims_a_rack_where_nothing_else_has_one() -> None:
    named = {"client_id": "diskless_az=az-9", "client_address": "10.2.0.9"}
    traffic = compute(
        result_of("traffic", Conf(racks=RACKS, rack_patterns=PATTERNS)),
        requests=[
            *(
                request(1, "PRODUCE", moved("a", n), client_id=id_)
                for n, id_ in enumerate(CLAIMS, 1)
            ),
            request(1, "PRODUCE", moved("a", 100), **named),
            request(1, "FETCH", moved("a", 200), **named, rack_id="az-1"),
        ],
    )
    racks = {row["bytes"]: (row["client_rack"], row["rack_source"]) for row in traffic}
    assert racks == {
        n: (rack, rack and "client_id") for n, rack in enumerate(CLAIMS.values(), 1)
    } | {100: ("az-2", "address"), 200: ("az-1", "request")}
    claimed = [row for row in traffic if row["rack_source"] == "client_id"]
    assert {row["is_rack_inferred"] for row in claimed} == {True}


MOVES = st.builds(
    request,
    st.integers(0, 200),
    st.sampled_from(["PRODUCE", "FETCH"]),
    st.builds(moved, st.sampled_from("ab"), st.integers(0, 99), st.sampled_from([0, 0, 6, None])),
    st.builds(moved, st.sampled_from("ab"), st.integers(0, 99)),
    broker_id=st.integers(1, 3),
    client_id=st.sampled_from(["x", "y", None]),
    rack_id=st.sampled_from([None, "az-1", "az-2"]),
    client_address=st.sampled_from([None, "10.2.0.9", "10.3.0.9"]),
    weight=st.sampled_from([None, 1, 10]),
)


@pytest.mark.faults
@given(st.lists(MOVES, max_size=20))
def test_both_tables_have_the_same_bytes_between_racks(requests: list[Row]) -> None:
    facts = {"requests": requests, "brokers": [broker(1, "az-1"), broker(2, "az-2")]}

    def totals(traffic: list[Row], direction: str) -> Counter[tuple[Any, ...]]:
        sums = Counter[tuple[Any, ...]]()
        for row in traffic:
            names = ("event_time", "broker_id", "client_rack", "is_rack_inferred", "broker_rack")
            key = (row[direction], *(row[name] for name in names))
            sums[*key, "bytes"] += row["bytes"]
            sums[*key, "cross"] += row["cross_rack_bytes"] or 0
            sums[*key, "unknown"] += row["cross_rack_bytes"] is None and row["bytes"]
        return sums

    by_client = compute(result_of("traffic", Conf(racks=RACKS)), **facts)
    by_rack = compute(result_of("rack_traffic", Conf(racks=RACKS)), **facts)
    assert totals(by_client, "direction") == totals(by_rack, "flow")


def test_bytes_of_a_rack_that_no_broker_has_cross_none_that_is_known() -> None:
    fetches = [
        request(n, "FETCH", moved("a", 2**n), rack_id=rack)
        for n, rack in enumerate(["use2-az1", "use2-az2", "us-east-2c", "USE2-AZ1"])
    ]
    brokers = [broker(1, "use2-az1"), broker(2, "use2-az2")]
    traffic = compute(result_of("traffic"), requests=fetches, brokers=brokers)
    seen = {row["client_rack"]: row["cross_rack_bytes"] for row in traffic}
    assert seen == {"use2-az1": 0, "use2-az2": 2, "us-east-2c": None, "USE2-AZ1": None}
    pairs = compute(result_of("rack_traffic"), requests=fetches, brokers=brokers)
    assert {row["client_rack"]: row["cross_rack_bytes"] for row in pairs} == seen
