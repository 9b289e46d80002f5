"""What topics keep on disks by the hour, as snapshots know it, and what that costs."""

from collections import defaultdict
from itertools import pairwise
from random import Random

import pytest

from ...rows import Row, at, counted, setting
from .test_snapshots_alone import replica, size, taken
from .view_tables import Picked, Tables, assert_shown, by_case, view

GIB = 2**30
HOUR_S = 3_600
PRICES = [setting("prices.currency", "EUR"), setting("prices.stored_per_gib_month", 730.0)]
STORAGE = "storage_by_hour ORDER BY hour, topic"


def tables(*rows: Row, snapshots: list[Row], prices: list[Row] = PRICES) -> Tables:
    """Rows of sizes and of replicas, with the snapshots that took them."""
    return {
        "replica_sizes": [row for row in rows if "log_dir" in row],
        "replicas": [row for row in rows if "log_dir" not in row],
        "pipeline_progress": snapshots,
        "settings": prices,
    }


ONE = (replica(0, 1), size(0, 1, GIB))
TWO = (*ONE, replica(0, 2), size(0, 2, GIB))
COLUMNS = ("known_s", "stored_bytes", "byte_hours", "storage_cost")
CASES: dict[str, tuple[Tables, Picked]] = {
    "one snapshot knows no time": (tables(*ONE, snapshots=taken(0)), []),
    "a GiB for an hour costs a 730th of the price": (
        tables(*ONE, snapshots=taken(0, HOUR_S)),
        [(HOUR_S, GIB, GIB, 1.0)],
    ),
    "every replica counts": (
        tables(*TWO, snapshots=taken(0, HOUR_S)),
        [(HOUR_S, 2 * GIB, 2 * GIB, 2.0)],
    ),
    "a size holds until the next snapshot": (
        tables(*ONE, size(1_800, 1, 3 * GIB), snapshots=taken(0, 1_800, HOUR_S)),
        [(HOUR_S, 2 * GIB, 2 * GIB, 2.0)],
    ),
    "before the first and after the last snapshot nothing is known": (
        tables(replica(900, 1), size(900, 1, GIB), snapshots=taken(900, 1_800)),
        [(900, GIB, GIB / 4, 0.25)],
    ),
    "two hours between two snapshots are known": (
        tables(*ONE, snapshots=taken(0, 2 * HOUR_S)),
        [(HOUR_S, GIB, GIB, 1.0)] * 2,
    ),
    "more are not": (tables(*ONE, snapshots=taken(0, 2 * HOUR_S + 1)), []),
    "known again after a pause": (
        tables(*ONE, snapshots=taken(0, 900, 4 * HOUR_S, 5 * HOUR_S)),
        [(900, GIB, GIB / 4, 0.25), (HOUR_S, GIB, GIB, 1.0)],
    ),
    "a row of a change is a snapshot, though its count is missing": (
        tables(*ONE, size(1_800, 1, 3 * GIB), snapshots=taken(0)),
        [(1_800, GIB, GIB / 2, 0.5)],
    ),
    "a topic of a part of the hour": (
        tables(*ONE, replica(1_800, 1, is_removed=True), snapshots=taken(0, 1_800, HOUR_S)),
        [(HOUR_S, GIB / 2, GIB / 2, 0.5)],
    ),
    "a replica listed between two snapshots of sizes": (
        tables(size(0, 1, GIB), replica(900, 1), snapshots=taken(0, HOUR_S)),
        [(HOUR_S, 0.75 * GIB, 0.75 * GIB, 0.75)],
    ),
    "a topic that is deleted": (
        tables(
            *ONE,
            replica(HOUR_S, 1, is_removed=True),
            size(HOUR_S, 1, 0, is_removed=True),
            snapshots=taken(0, HOUR_S, 2 * HOUR_S),
        ),
        [(HOUR_S, GIB, GIB, 1.0)],
    ),
    "a topic that is deleted and made again with the same name": (
        tables(
            *ONE,
            replica(1_800, 1, is_removed=True),
            replica(1_800, 1, topic_id="j"),
            size(1_800, 1, 0),
            snapshots=taken(0, 1_800, HOUR_S),
        ),
        [(HOUR_S, GIB / 2, GIB / 2, 0.5)],
    ),
    "a future replica does not count until it is in use": (
        tables(
            *ONE,
            size(0, 1, GIB, log_dir="/new", is_future=True),
            size(1_800, 1, GIB, log_dir="/new"),
            size(1_800, 1, 0, is_removed=True),
            snapshots=taken(0, 1_800, HOUR_S),
        ),
        [(HOUR_S, GIB, GIB, 1.0)],
    ),
    "a log that is no replica's does not count": (
        tables(*ONE, size(0, 9, GIB), snapshots=taken(0, HOUR_S)),
        [(HOUR_S, GIB, GIB, 1.0)],
    ),
    "an empty log costs nothing, and that is known": (
        tables(replica(0, 1), size(0, 1, 0), snapshots=taken(0, HOUR_S)),
        [(HOUR_S, 0.0, 0.0, 0.0)],
    ),
    "without a price there is no cost": (
        tables(*ONE, snapshots=taken(0, HOUR_S), prices=PRICES[:1]),
        [(HOUR_S, GIB, GIB, None)],
    ),
    "a price of 0 is a price": (
        tables(
            *ONE, snapshots=taken(0, HOUR_S), prices=[setting("prices.stored_per_gib_month", 0.0)]
        ),
        [(HOUR_S, GIB, GIB, 0.0)],
    ),
    "a replica without a size": (
        tables(*ONE, replica(0, 2), snapshots=taken(0, HOUR_S)),
        [(HOUR_S, None, None, None)],
    ),
    "a replica without a size for a part of an hour": (
        tables(
            *ONE, replica(0, 2), size(1_800, 2, GIB), snapshots=taken(0, 1_800, HOUR_S, 2 * HOUR_S)
        ),
        [(HOUR_S, None, None, None), (HOUR_S, 2 * GIB, 2 * GIB, 2.0)],
    ),
    "sizes alone say nothing of the replicas": (
        tables(size(0, 1, GIB), snapshots=taken(0, HOUR_S)),
        [],
    ),
    "hours whose changes upkeep removed": (
        tables(replica(0, 1), size(100 * 24 * HOUR_S, 1, GIB), snapshots=taken(0, HOUR_S)),
        [],
    ),
}


def test_what_a_topic_keeps_in_an_hour_and_its_cost() -> None:
    cases = {case: (given, [*map(pytest.approx, rows)]) for case, (given, rows) in CASES.items()}
    assert_shown(cases, STORAGE, *COLUMNS)


def test_an_unknown_hour_has_a_reason_and_the_replicas_without_a_size() -> None:
    missing = [replica(0, broker_id) for broker_id in (2, 3)]
    late = size(1_800, 3, GIB)
    left_out = {"job": "snapshot", "target": "replica_sizes", "reason": "BROKER_NOT_AVAILABLE"}
    unanswered = counted(0, 1, "left_out", 2, **left_out)
    cases: dict[str, tuple[Tables, Picked]] = {
        "none": (tables(*ONE, snapshots=taken(0, HOUR_S)), [(0, None, 0)]),
        "two, then one": (
            tables(*ONE, *missing, late, snapshots=taken(0, 1_800, 2 * HOUR_S)),
            [(2, "unsized_replicas", 0), (1, "unsized_replicas", 0)],
        ),
        "a broker that did not answer": (
            tables(*ONE, snapshots=[*taken(0, HOUR_S), unanswered]),
            [(0, None, 2)],
        ),
    }
    assert_shown(cases, STORAGE, "unsized_replicas", "unknown_reason", "unanswered_parts")


def test_a_month_of_730_hours_costs_the_price() -> None:
    hours = taken(*(n * HOUR_S for n in range(731)))
    rows = view(STORAGE, tables(*ONE, snapshots=hours))
    assert len(rows) == 730
    assert sum(row["storage_cost"] for row in rows) == pytest.approx(730.0)


States = list[tuple[float, dict[tuple[str, int], int | None]]]
"""Snapshots: a time, and the replicas of topics by broker with their sizes; None: no size."""


def drawn_states(random: Random) -> States:
    """Snapshots at random times, of which some are far apart."""
    states: States = []
    second = float(random.randrange(HOUR_S))
    replicas: dict[tuple[str, int], int | None] = {}
    for _ in range(random.randint(1, 12)):
        for key in [(topic, broker) for topic in "ab" for broker in (1, 2)]:
            action = random.random()
            if action < 0.1:
                replicas.pop(key, None)
            elif action < 0.15:
                replicas[key] = None
            elif action < 0.6:
                replicas[key] = random.choice((0, 5, GIB, 7 * GIB))
        states.append((second, dict(replicas)))
        second += random.choice((0.5, 60, 600, 1_800, HOUR_S, 2 * HOUR_S, 2 * HOUR_S + 1, 9_999))
    return states


def change_rows(states: States) -> list[Row]:
    """What snapshots append of these states: the rows that changed."""
    rows: list[Row] = []
    listed: set[tuple[str, int]] = set()
    sizes: dict[tuple[str, int], int] = {}
    for second, replicas in states:
        now = {key: n for key, n in replicas.items() if n is not None}
        for topic, broker in replicas.keys() - listed:
            rows.append(replica(second, broker, topic=topic, topic_id=topic))
        for topic, broker in listed - replicas.keys():
            rows.append(replica(second, broker, topic=topic, topic_id=topic, is_removed=True))
        for topic, broker in {key for key in now if sizes.get(key) != now[key]}:
            rows.append(size(second, broker, now[topic, broker], topic=topic))
        for topic, broker in sizes.keys() - now:
            rows.append(
                size(second, broker, 0, topic=topic, is_removed=True) | {"size_bytes": None}
            )
        listed, sizes = set(replicas), now
    return rows


def expected_hours(states: States) -> dict[tuple[int, str], tuple[float, float | None]]:
    """Known seconds and byte-seconds of each hour and topic, one piece of time after the other."""
    known_s = defaultdict[int, float](float)
    kept = defaultdict[tuple[int, str], float](float)
    unsized = set[tuple[int, str]]()
    for (since, replicas), (until, _) in pairwise(states):
        if until - since > 2 * HOUR_S:
            continue
        for hour in range(int(since // HOUR_S), int(until // HOUR_S) + 1):
            length = min(until, (hour + 1) * HOUR_S) - max(since, hour * HOUR_S)
            if length <= 0:
                continue
            known_s[hour] += length
            for (topic, _), size_bytes in replicas.items():
                kept[hour, topic] += (size_bytes or 0) * length
                if size_bytes is None:
                    unsized.add((hour, topic))
    return {key: (known_s[key[0]], None if key in unsized else kept[key]) for key in kept}


def test_hours_add_up_to_the_time_weighted_size_in_any_order_of_rows() -> None:
    states = {str(seed): drawn_states(Random(seed)) for seed in range(60)}
    cases: dict[str, Tables] = {}
    for case, drawn in states.items():
        rows = change_rows(drawn)
        # A replay appends rows again; the order of rows in files means nothing.
        rows += rows[: len(rows) // 3]
        Random(case).shuffle(rows)
        cases[case] = tables(*rows, snapshots=taken(*(second for second, _ in drawn)))
    actual = by_case(cases, f"SELECT * FROM {STORAGE}")
    for case, drawn in states.items():
        hours = {
            (int((row["hour"] - at(0)).total_seconds() // HOUR_S), row["topic"]): (
                row["known_s"],
                row["byte_hours"] and row["byte_hours"] * HOUR_S,
            )
            for row in actual[case]
        }
        expected = expected_hours(drawn)
        assert hours.keys() == expected.keys(), case
        for key, (known_s, byte_s) in expected.items():
            assert hours[key] == (pytest.approx(known_s), pytest.approx(byte_s)), (case, key)
        for row in actual[case]:
            # Null in, null out: a reason is there if and only if the number is not.
            assert (row["stored_bytes"] is None) == (row["unknown_reason"] is not None)
            assert (row["stored_bytes"] is None) == (row["storage_cost"] is None)
