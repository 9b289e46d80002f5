"""Moves of replicas: how far each is, what came and what is left, and those that never end."""

from datetime import datetime
from math import sqrt
from statistics import stdev
from typing import Any

import pytest

from ... import case_tables
from ...cases import cases
from ...rows import Row, altered, at, behind, moved, reassigned, row
from .test_snapshots_alone import moving, replica, size, taken
from .view_tables import Tables, assert_outcomes, picked, view

PARTITION = {"topic_id": "t1", "topic": "orders", "partition": 0}
NAMES = [row("topics", -600, {}, topic="orders")]


def moves_of(content: Tables) -> dict[int, Row]:
    """Rows of `reassignments` by replica, where topics are named by a snapshot."""
    moves = view("reassignments", {"topics": NAMES} | content)
    assert len({move["replica_id"] for move in moves}) == len(moves)
    return {move["replica_id"]: move for move in moves}


def falling(intervals: int, left: int, per_interval: int, **others: Any) -> list[Row]:
    """Ten seconds after ten seconds, so many offsets nearer, of a hundred bytes each."""
    return [
        behind(10 * n, 3, left - per_interval * n, 1_000 + per_interval * n, 100 * per_interval)
        | others
        for n in range(intervals)
    ]


REQUESTED = [reassigned(0, "requested", n, place=n - 2) for n in (2, 3)]
REPLICA = row(
    "replicas", -60, {"is_offline": False}, topic="orders", is_in_sync=True, is_leader=True
)


def test_a_move_tells_what_is_left_and_how_long_it_takes() -> None:
    content = {"replicas": [REPLICA | {"broker_id": 2}], "replica_lag": falling(6, 10_000, 1_000)}
    moves = moves_of(content | {"reassignment_changes": REQUESTED})
    assert (moves[2]["state"], moves[3]["state"]) == ("in_place", "moving")
    names = ("requested_by", "leader_id", "offsets_left", "bytes_left")
    assert picked([moves[3]], *names) == [("User:admin", 1, 5_000, 500_000)]
    paces = ("bytes_per_s", "written_bytes_per_s", "eta_s")
    assert picked([moves[3]], *paces) == [pytest.approx((10_000, 0, 50))]
    assert moves[3]["eta_error_s"] == pytest.approx(0, abs=1e-3)


def test_what_an_uneven_pace_is_worth_is_told() -> None:
    left = [10_000, 9_500, 7_800, 7_200, 5_600, 5_000]
    lag = [behind(10 * n, 3, lag, 11_000 - lag, 50_000) for n, lag in enumerate(left)]
    move = moves_of({"reassignment_changes": REQUESTED, "replica_lag": lag})[3]
    assert move["eta_s"] == pytest.approx(47.5, rel=0.1)
    steps = [500, 1_700, 600, 1_600, 600]
    error = 2 * stdev(steps) * sqrt(5 * (5 / 5 + 1))
    assert move["eta_error_s"] == pytest.approx(move["eta_s"] * error / 5_000)


STATES: dict[tuple[str], dict[str, Tables]] = {
    **case_tables.table(__file__, "STATES", falling, moved, row),
    ("moving",): {
        "records come": {"replica_lag": falling(3, 900, 100)},
        "too soon to tell": {"replica_lag": falling(3, 900, -50)},
        "it fell behind, and comes nearer since": {
            "replica_lag": [*falling(5, 900, -50), *falling(20, 2_000, 100)[8:]]
        },
        "a gap of two minutes in the log": {
            "replica_lag": [*falling(3, 2_000, 100), *falling(19, 2_000, 100)[16:]]
        },
        "the leader's clock is five seconds late": {
            "replica_lag": [behind(10 * n - 5, 3, 900 - n, n, 100) for n in range(4)]
        },
        "another broker's clock is five seconds early": {
            "replica_lag": falling(3, 900, 100),
            "traffic": [moved(34, 1)],
        },
        # Nobody knows what the replica fetched since.
        "requests are read further than fetches": {
            "replica_lag": falling(3, 900, 100),
            "traffic": [moved(120, 1)],
            "fetches": [row("fetches", 4, {})],
        },
    },
}


def test_how_a_move_goes() -> None:
    requested = {"topics": NAMES, "reassignment_changes": REQUESTED}
    outcomes = {
        state: {case: requested | tables for case, tables in alike.items()}
        for state, alike in STATES.items()
    }
    assert_outcomes(outcomes, "reassignments WHERE replica_id = 3", "state")


SLOW_THEN_FAST = [*falling(7, 200, -160), *falling(12, 1_900, 100)[7:]]
RATE, LIST = "leader.replication.throttled.rate", "follower.replication.throttled.replicas"


@cases(
    ("change", "expected"),
    ("of its leader", altered(58, RATE, "9000000"), ("moving", 80)),
    ("of its follower", altered(58, RATE, "9000000", entity_name="3"), ("moving", 80)),
    ("of all, taken away", altered(58, RATE, None, entity_name=""), ("moving", 80)),
    ("of its list", altered(58, LIST, "0:3"), ("moving", 80)),
    ("only just", altered(95, RATE, "9000000"), ("moving", None)),
    ("refused", altered(58, RATE, "9000000", error_code=42), ("never_converges", None)),
    ("of another broker", altered(58, RATE, "9000000", entity_name="9"), ("never_converges", None)),
    (
        "of another topic",
        altered(58, LIST, "0:3", entity_name="payments"),
        ("never_converges", None),
    ),
)
def test_the_pace_is_that_since_its_throttle_was_altered(
    change: Row, expected: tuple[Any, ...]
) -> None:
    content = {"reassignment_changes": REQUESTED, "replica_lag": SLOW_THEN_FAST}
    move = moves_of(content | {"config_alterations": [change]})[3]
    assert (move["state"], move["eta_s"] and round(move["eta_s"])) == expected
    assert move["offsets_left"] == SLOW_THEN_FAST[-1]["lag"]


@cases(
    ("later", "state"),
    ("it joined", [reassigned(9, "in_sync", 3, **PARTITION)], "done"),
    ("it joined, and leads", [reassigned(9, "in_sync", 3, **PARTITION, error_code=108)], "done"),
    ("its leader was refused", [reassigned(9, "in_sync", 3, **PARTITION, error_code=97)], "moving"),
    (
        "of another partition",
        [reassigned(9, "in_sync", 3, **(PARTITION | {"partition": 1}))],
        "moving",
    ),
    ("it was called off", [reassigned(9, "cancelled", None)], "cancelled"),
    ("nothing to call off", [reassigned(9, "cancelled", None, error_code=85)], "moving"),
    ("it was in sync once", [reassigned(-9, "in_sync", 3, **PARTITION)], "moving"),
)
def test_how_a_move_ends(later: list[Row], state: str) -> None:
    content = {"reassignment_changes": [*REQUESTED, *later], "replica_lag": falling(3, 900, 100)}
    move = moves_of(content)[3]
    assert move["state"] == state
    left = {"done": (0, 0), "cancelled": (None, None)}.get(state, (700, pytest.approx(70_000)))
    assert (move["offsets_left"], move["bytes_left"]) == left


def sized(*seconds: float, new: int) -> Tables:
    """Snapshots in which the new replica's log grew by so much each; its leader has 9,000 bytes."""
    logs = [(second, 3, new * nth) for nth, second in enumerate(seconds, 1)]
    return {
        "moving_replicas": [moving(seconds[0], topic="orders")],
        "replicas": [replica(-60, 1, topic="orders")],
        "replica_sizes": [size(*each, topic="orders") for each in ((-60, 1, 9_000), *logs)],
        "pipeline_progress": taken(*seconds),
    }


STUCK = {"fetches": [row("fetches", 120, {})]}
LEFT: dict[str, tuple[Tables, tuple[Any, ...]]] = {
    "stuck, by a snapshot": (
        STUCK | sized(60, new=500),
        ("stuck", 8_500, "snapshot", None, "stands"),
    ),
    "stuck, without a snapshot": (STUCK, ("stuck", None, None, None, "stands")),
    "a snapshot from before the move": (
        STUCK | sized(-30, new=500),
        ("stuck", None, None, None, "stands"),
    ),
    "fetches know better": (
        {"replica_lag": falling(6, 10_000, 1_000)} | sized(40, new=500),
        ("moving", 500_000, "fetches", 50, None),
    ),
    "one fetch, and a pace by snapshots": (
        {"replica_lag": falling(1, 900, 100)} | sized(10, 20, new=1_000),
        ("moving", 7_000, "snapshot", 70, None),
    ),
    "one fetch alone": (
        {"replica_lag": falling(1, 900, 100)},
        ("moving", None, None, None, "no_pace"),
    ),
    "called off": (
        sized(60, new=500) | {"reassignment_changes": [reassigned(9, "cancelled", None)]},
        ("cancelled", None, None, None, "ended"),
    ),
}


@pytest.mark.parametrize(("content", "expected"), LEFT.values(), ids=LEFT)
def test_what_fetches_do_not_show_is_as_snapshots_have_it(
    content: Tables, expected: tuple[Any, ...]
) -> None:
    changes = [*REQUESTED, *content.get("reassignment_changes", [])]
    move = moves_of(content | {"reassignment_changes": changes})[3]
    names = ("state", "bytes_left", "bytes_left_source", "eta_s", "eta_unknown")
    assert picked([move], *names) == [expected]


def minute(second: float, first: int, last: int, *times: float, **others: Any) -> Row:
    """A minute of fetches with the times of the first and last offset; each has 100 bytes."""
    unread = others.pop("last_bytes", 0)
    given = PARTITION | {"leader_id": 1, "follower_id": 3, "fetches": 10, "last_bytes": unread}
    given |= {"first_fetch_offset": first, "last_fetch_offset": last, "offset_lag": 1_500 - last}
    given |= {"first_high_watermark": 1_500, "high_watermark": 1_500} | others
    given |= dict(zip(("first_fetch_time", "last_fetch_time"), map(at, times), strict=True))
    return row("replication_traffic", second, given, bytes=100 * (last - first) + unread)


MINUTES = {
    "replication_traffic": [minute(0, 0, 240, 3, 51), minute(60, 240, 289, 63, 112, last_bytes=7)]
}
OTHERS = {"replication_traffic": [minute(60, 240, 289, 63, 112, follower_id=2)]}
ONE_FETCH = {"replica_lag": [behind(5, 3, 1_500, 0, 0)]}
UNTIMED = {"first_fetch_time": None, "last_fetch_time": None, "last_bytes": None}
OLD_SIZES = sized(2, new=8_000)


@cases(
    ("content", "expected"),
    ("minutes are newer", ONE_FETCH | MINUTES, (1_211, 121_100, "fetches", at(112))),
    ("of another replica", ONE_FETCH | OTHERS, (1_500, None, None, at(14))),
    (
        "a later minute in which it read nothing",
        ONE_FETCH | {"replication_traffic": [minute(60, 0, 0, 70, 70)]},
        (1_500, None, None, at(70)),
    ),
    ("minutes alone", MINUTES, (1_211, 121_100, "fetches", at(112))),
    (
        "a fetch and a later snapshot",
        ONE_FETCH | sized(20, new=8_000),
        (None, 1_000, "snapshot", at(20)),
    ),
    ("a fetch and an earlier snapshot", ONE_FETCH | OLD_SIZES, (1_500, None, None, at(14))),
    (
        "fetches are read nearly as far as minutes",
        {"replica_lag": falling(9, 1_400, 50)} | MINUTES,
        (1_000, 100_000, "fetches", at(89)),
    ),
    (
        "minutes of an earlier version, without times",
        ONE_FETCH | {"replication_traffic": [MINUTES["replication_traffic"][0] | UNTIMED]},
        (1_500, None, None, at(14)),
    ),
)
def test_offsets_and_bytes_that_are_left_are_of_one_time(
    content: Tables, expected: tuple[Any, ...]
) -> None:
    move = moves_of({"reassignment_changes": REQUESTED} | content)[3]
    names = ("offsets_left", "bytes_left", "bytes_left_source", "left_known_at")
    assert picked([move], *names) == [expected]


# The real sizes: of 20,012 bytes each, in four answers, as a throttle let them through.
THROTTLED = minute(0, 0, 190, 2.996, 43.017) | {"bytes": 3_802_334}


@cases(
    ("others", "last_time"),
    ("fetches are read less far", {"replica_lag": [behind(-6, 3, 1_500, 0, 0)]}, at(43.017)),
    ("requests alone", {}, at(43.017)),
    (
        "its throttle was set before its first fetch",
        {"config_alterations": [altered(2, RATE, "20000")]},
        at(43.017),
    ),
    (
        "it joined since",
        {"reassignment_changes": [reassigned(40, "in_sync", 3, **PARTITION)]},
        None,
    ),
)
def test_a_minute_of_fetches_shows_a_pace(others: Tables, last_time: datetime | None) -> None:
    changes = [*REQUESTED, *others.get("reassignment_changes", [])]
    traffic = {"replication_traffic": [THROTTLED]}
    move = moves_of(traffic | others | {"reassignment_changes": changes})[3]
    assert move["last_fetch_time"] == last_time
    if last_time is None:
        return
    assert (move["state"], move["offsets_left"], move["left_known_at"]) == (
        ("moving", 1_310, last_time)
    )
    assert move["bytes_left"] == pytest.approx(1_310 * 3_802_334 / 190)
    paces = ("bytes_per_s", "written_bytes_per_s", "eta_s", "eta_error_s")
    seconds = 43.017 - 2.996
    expected = (3_802_334 / seconds, 0, 1_310 / 190 * seconds)
    assert picked([move], *paces) == [(*map(pytest.approx, expected), None)]


def test_what_is_written_meanwhile_is_no_part_of_the_pace_of_a_minute() -> None:
    grown = minute(0, 0, 190, 3, 43, high_watermark=1_600, offset_lag=1_410)
    move = moves_of({"reassignment_changes": REQUESTED, "replication_traffic": [grown]})[3]
    assert (move["offsets_left"], move["eta_s"]) == (1_410, pytest.approx(1_410 / 90 * 40))
    assert move["written_bytes_per_s"] == pytest.approx(100 * 100 / 40)


def test_a_replica_that_was_in_sync_before_has_nothing_left() -> None:
    """Also if it falls behind later: no other replica of the move waits for that."""
    content = {
        "reassignment_changes": REQUESTED,
        "replicas": [REPLICA | {"broker_id": 3}],
        "replica_lag": falling(3, 900, 100),
    }
    move = moves_of(content)[3]
    assert (move["state"], move["offsets_left"], move["bytes_left"]) == ("in_place", 0, 0)
    assert view("move_progress", {"topics": NAMES} | content) == []


def test_the_last_request_counts() -> None:
    moves = moves_of(
        {
            "reassignment_changes": [
                *REQUESTED,
                reassigned(30, "requested", 4),
                reassigned(40, "requested", 5, error_code=39),
                reassigned(50, "capped", None, topic=None, partition=None),
            ]
        }
    )
    assert set(moves) == {4}


def test_the_log_alone_is_enough() -> None:
    name = {"cluster_id": "c1", "event_date": at(0).date(), "event_time": at(0), "requests": 1}
    content = {
        "topics": [],
        "topic_names": [name | {"topic_id": "t1", "topic": "orders"}],
        "reassignment_changes": REQUESTED,
        "replica_lag": falling(6, 10_000, 1_000),
    }
    moves = moves_of(content)
    assert (moves[2]["state"], moves[3]["state"]) == ("stuck", "moving")


def test_how_near_it_came_and_when_it_would_be_there_is_told_as_it_went() -> None:
    joined = reassigned(39, "in_sync", 3, **PARTITION)
    before = behind(-100, 3, 5, 0, 100)
    lags = [*falling(2, 10_000, 1_000), behind(20, 3, 4_000, 7_000, 500_000)]
    content = {"reassignment_changes": [*REQUESTED, joined], "replica_lag": [before, *lags]}
    moves = view("move_progress ORDER BY event_time", {"topics": NAMES} | content)
    names = ("replica_id", "offsets_left", "bytes_per_s", "eta_s", "took_s")
    assert picked(moves, *names) == [
        (3, 10_000, None, None, 30),
        (3, 9_000, 10_000, 90, 20),
        (3, 4_000, 50_000, 8, 10),
    ]
    per_offset = (100_000 + 100_000) / 6_000
    assert moves[-1]["bytes_left"] == pytest.approx(4_000 * per_offset)
    assert {move["requested_by"] for move in moves} == {"User:admin"}


@cases(
    "later",
    ("an hour later", [behind(3_600, 3, 500, 90_000, 10_000_000)]),
    ("in the seconds it joined in", [behind(31, 3, 500, 90_000, 10_000_000)]),
)
def test_what_it_falls_behind_once_it_joined_is_no_part_of_its_move(later: list[Row]) -> None:
    changes = [*REQUESTED, reassigned(39, "in_sync", 3, **PARTITION)]
    lags = [*falling(3, 3_000, 1_000), *later]
    moves = view(
        "move_progress ORDER BY event_time",
        {"topics": NAMES, "reassignment_changes": changes, "replica_lag": lags},
    )
    assert picked(moves, "offsets_left", "eta_s", "took_s") == [
        (3_000, None, 30),
        (2_000, 20, 20),
        (1_000, 10, 10),
    ]
    assert [move["bytes_left"] for move in moves] == pytest.approx([300_000, 200_000, 100_000])
