"""Bytes that followers read, those of listed replicas, and the rates brokers measure."""

import random

import pytest

from quotaflow.udfs.rules.quota_rate import SimpleRate

from ....cases import cases
from ....delta_tables import NOON
from ....rows import Row, at
from .throttle_rows import (
    APPEND,
    BROKER,
    FOLLOWERS,
    LEADER_RATE,
    LEADERS,
    SET,
    TOPIC,
    alter,
    computed,
    fetch,
    names,
    of_cluster,
    part,
    produce,
    seen,
)

OTHER = {"topic_id": "id2", "partition": 3}
OLD = {"topic_id": None, "topic": "orders"}
REQUESTS = [
    names(1, ("orders", "id1")),
    fetch(2, 1, 2, part(100)),
    alter(3, TOPIC, "orders", (LEADERS, SET, "0:1")),
    fetch(4, 1, 2, part(1_000), part(7, **OTHER), part(9, error_code=3)),
    alter(5, TOPIC, "orders", (FOLLOWERS, APPEND, "0:2,1:2")),
    fetch(6, 1, 2, part(10_000, fetch_offset=40)),
    fetch(7, 1, 2, part(0, fetch_offset=90), forgotten=[{"topic_id": "id1", "partition": 0}]),
    fetch(8, 1, 3, part(None, high_watermark=None)),
    fetch(9, 1, 3, part(5, **OLD)),
    produce(10, 1, part(50), part(60)),
    # In sync, and waiting for new records: nothing was stalled.
    fetch(11, 1, 4, part(0, fetch_offset=10, high_watermark=10)),
    fetch(12, 1, 4, part(5, fetch_offset=10, high_watermark=10)),
    fetch(13, 1, 4, part(0, fetch_offset=20, high_watermark=20)),
    names(61, ("clicks", "id2")),
    fetch(62, 1, 2, part(7, **OTHER)),
]
FETCHED = ("fetches", "bytes", "leader_throttled_bytes", "follower_throttled_bytes")
OFFSETS = ("first_fetch_offset", "last_fetch_offset", "high_watermark", "offset_lag")
STALLED = ("behind_fetches", "stalled_fetches", "omitted_fetches")
EXPECTED = {
    (0, 1, 2, "id1", "orders", 0): (5, 11_100, 11_000, 10_000, 10, 90, 90, 0, 4, 0, 1),
    (0, 1, 3, "id1", "orders", 0): (1, 0, 0, 0, 10, 10, None, None, 0, 0, 0),
    (0, 1, 3, None, "orders", 0): (1, 5, 5, 0, 10, 10, 90, 80, 1, 0, 0),
    (0, 1, 4, "id1", "orders", 0): (3, 5, 5, 0, 10, 20, 20, 0, 0, 0, 0),
    (0, 1, None, "id1", "orders", 0): (2, 110, 0, 0, None, None, None, None, 0, 0, 0),
    (0, 1, 2, "id2", "clicks", 3): (1, 7, 0, 0, 10, 10, 90, 80, 1, 0, 0),
    (1, 1, 2, "id2", "clicks", 3): (1, 7, 0, 0, 10, 10, 90, 80, 1, 0, 0),
}


def second(row: Row) -> int:
    return int((row["event_time"] - NOON).total_seconds())


def test_what_followers_read_and_lists_held() -> None:
    traffic = computed(of_cluster(REQUESTS), {})
    rows = traffic["replication_traffic"]
    key = ("leader_id", "follower_id", "topic_id", "topic", "partition")
    got = {
        (second(row) // 60, *(row[name] for name in key)): tuple(
            row[name] for name in (*FETCHED, *OFFSETS, *STALLED)
        )
        for row in rows
    }
    assert got == EXPECTED
    assert len(rows) == len(EXPECTED)
    rates = {
        (row["side"], second(row)): (row["broker_id"], row["bytes"], row["throttled_rate"])
        for row in traffic["replication_rates"]
    }
    assert rates == {
        ("leader", 4): (1, 1_000, 1_000.0),
        ("leader", 6): (1, 10_000, 11_000 / 2),
        ("leader", 9): (1, 5, 11_005 / 5),
        ("leader", 12): (1, 5, 11_010 / 8),
        ("follower", 6): (2, 10_000, 10_000.0),
    }


def requested(second: float, offset: int) -> Row:
    """A fetch with an offset, that a throttle answers without the partition."""
    missing = part(None, fetch_offset=offset, high_watermark=None)
    return fetch(second, 1, 3, missing)


def came(second: float, size: int, high_watermark: int = 1_500) -> Row:
    """Records, in an answer to a fetch that names no offset: its session has it (KIP-227)."""
    data = part(size, fetch_offset=None, in_request=False, high_watermark=high_watermark)
    return fetch(second, 1, 3, data)


ANSWERS = [
    fetch(3, 1, 3, part(0, fetch_offset=0, high_watermark=1_500)),
    *(came(8.763, 980), requested(8.987, 49), came(19.988, 860), requested(20.088, 92)),
]
LAST = ("first_fetch_time", "last_fetch_time", "first_high_watermark", "bytes", "last_bytes")


@cases(
    ("requests", "expected"),
    ("the last records show in an offset", ANSWERS, (at(3), at(20.088), 1_500, 1_840, 0)),
    (
        "those that came since do not",
        [*ANSWERS, came(31.628, 980, 1_600)],
        (at(3), at(20.088), 1_500, 2_820, 980),
    ),
    (
        "nor those that came with it",
        [*ANSWERS, fetch(31, 1, 3, part(70, fetch_offset=141, high_watermark=1_500))],
        (at(3), at(31), 1_500, 1_910, 70),
    ),
    ("no fetch has an offset", [came(5, 980)], (None, None, 1_500, 980, None)),
    ("clients write", [produce(5, 1, part(50))], (None, None, None, 50, None)),
)
def test_which_records_of_a_minute_show_in_an_offset(
    requests: list[Row], expected: tuple[object, ...]
) -> None:
    (row,) = computed(of_cluster(requests), {})["replication_traffic"]
    assert tuple(row[name] for name in LAST) == expected


def test_a_topic_a_snapshot_knows_has_its_name_before() -> None:
    snapshots = {"topics": of_cluster([seen(600, topic_id="id1", topic="orders")])}
    rows = computed(of_cluster(REQUESTS[1:2]), snapshots)
    assert [row["topic"] for row in rows["replication_traffic"]] == ["orders"]


def test_rates_are_those_of_kafkas_simple_rate() -> None:
    dice = random.Random(73)
    sizes = {n: dice.randrange(1, 2_000_000) for n in range(2, 180) if dice.random() < 0.5}
    sizes = {n: size for n, size in sizes.items() if not 60 < n < 90}
    requests: list[Row] = [
        names(0, ("orders", "id1")),
        alter(0, TOPIC, "orders", (LEADERS, SET, "*")),
        alter(1, BROKER, "1", (LEADER_RATE, SET, "900000")),
        *(fetch(n, 1, 2, part(size)) for n, size in sizes.items()),
    ]
    rows = computed(of_cluster(requests), {})["replication_rates"]
    got = {second(row): row for row in rows}
    assert got.keys() == sizes.keys()
    assert {row["quota"] for row in rows} == {900_000.0}
    rate = SimpleRate()
    for n, size in sorted(sizes.items()):
        start_ms = int(at(n).timestamp() * 1_000)
        rate.record(size, start_ms)
        by_broker = rate.measure(start_ms)
        row = got[n]
        assert row["throttled_rate"] == pytest.approx(by_broker, rel=1e-9)
        assert row["is_over"] == (row["throttled_rate"] > 900_000)
