"""Who cannot read as it should, what lasts, and what to do about it."""

from typing import Any

import pytest

from ...cases import cases
from ...rows import HOSTILE, Row, at, choice, fault, lookup, replica_minute
from .view_tables import Picked, Tables, picked, view

OLD_JAVA = {"client_software_version": "3.3.2"}
LOOP = fault(0, "redirect_loop", 5, broker_id=1, preferred_read_replica=2)


def lagging(*lags: int | None, start: int = 0, **others: Any) -> list[Row]:
    """What a consumer read of follower 2 in minutes one after the other."""
    return [
        choice(60 * n, 8, broker_id=2, hw_lag=lag, **others) for n, lag in enumerate(lags, start)
    ]


def read(name: str, content: Tables, *columns: str) -> Picked:
    return picked(view(name, content), *columns)


@cases(
    ("faults", "expected"),
    (
        "the leader holds what the follower deleted",
        [fault(0, "offset_too_small", answers_leader_has=1)],
        ("align_log_starts", 2),
    ),
    (
        "deleted everywhere",
        [fault(0, "offset_too_small", answers_leader_has=0)],
        ("extend_retention", 2),
    ),
    (
        "nobody knows what the leader holds",
        [fault(0, "offset_too_small", answers_leader_has=None)],
        (None, None),
    ),
    (
        "it does not reset",
        [
            fault(0, "offset_too_small", 9, answers_leader_has=0),
            fault(0, "out_of_range_spin", 9, broker_id=3),
        ],
        ("update_client", 3),
    ),
    ("it does not go where it is sent", [LOOP], ("update_client", 1)),
    (
        "it goes, and is refused",
        [LOOP, fault(0, "unavailable_offset", 4)],
        ("check_replication", 2),
    ),
    ("past the end", [fault(0, "offset_too_large")], ("check_offsets", 2)),
    (
        "the worse of two followers",
        [fault(0, "unavailable_offset"), fault(60, "unavailable_offset", 9, broker_id=3)],
        ("check_replication", 3),
    ),
    ("some times too early", [fault(0, "uncommitted_offset", 9)], (None, None)),
    (
        "often too early",
        [fault(60 * n, "uncommitted_offset", 5) for n in range(2)],
        ("check_replication", 2),
    ),
    (
        "not told of a new leader",
        [fault(60 * n, "not_leader_or_follower", 5) for n in range(2)],
        ("refresh_metadata", 2),
    ),
    ("another error", [fault(0, "kafka_storage_error", 99)], (None, None)),
)
def test_advice_goes_by_the_worst(
    faults: list[Row], expected: tuple[str | None, int | None]
) -> None:
    content = {"fetch_faults": faults}
    assert read("read_problems", content, "advice", "broker_id") == [expected]


COUNTS = {
    "uncommitted_answers": 1,
    "unavailable_answers": 2,
    "too_small_answers": 3,
    "too_large_answers": 4,
    "unknown_answers": 5,
    "redirect_loop_answers": 6,
    "spin_answers": 7,
    "stale_metadata_answers": 8,
    "other_error_answers": 9,
    "resets": 10,
    "diverged_answers": 11,
    "lagging_minutes": 2,
    "answers_leader_has": 3,
}
KINDS = (
    *("uncommitted_offset", "unavailable_offset", "offset_too_small", "offset_too_large"),
    *("out_of_range_unknown", "redirect_loop", "out_of_range_spin", "unknown_leader_epoch"),
    "corrupt_message",
)


def test_a_client_has_one_row_for_a_topic() -> None:
    content = {
        "fetch_faults": [
            fault(0, kind, n, answers_leader_has=3, topic_id=f"t{n % 2}")
            for n, kind in enumerate(KINDS, 1)
        ],
        "offset_lookups": [
            lookup(60, "earliest", 3, requests=10),
            lookup(0, "epoch_end", 3, requests=40, diverged_answers=11),
            lookup(0, "epoch_end", 3, requests=40),
        ],
        "preferred_replicas": lagging(1, 2, 3, 4, 5),
    }
    (actual,) = read("read_problems", content, *COUNTS)
    assert actual == tuple(COUNTS.values())


@pytest.mark.parametrize(
    ("version", "advice"),
    [
        ("3.3.2", "update_client"),
        ("3.4.0", "check_replication"),
        ("7.3.1-ccs", "update_client"),
        ("7.4.0-ce", "check_replication"),
        ("x", "check_replication"),
    ],
)
def test_old_java_clients_stay_on_a_lagging_follower(version: str, advice: str) -> None:
    content = {
        "fetch_faults": [fault(0, "uncommitted_offset", client_software_version=version)],
        "preferred_replicas": lagging(1, 2, 3, 4),
    }
    names = ("advice", "broker_id", "stays_on_lagging_follower")
    assert read("read_problems", content, *names) == [(advice, 2, True)]


def test_the_least_of_several_versions_is_least_by_number() -> None:
    versions = ["2.10.0", "2.9.0", "dev", None]
    faults = [
        fault(n, "offset_too_small", client_software_version=v) for n, v in enumerate(versions)
    ]
    content = {"fetch_faults": faults}
    assert read("read_problems", content, "client_software_version") == [("2.9.0",)]


@cases(
    ("choices", "expected"),
    ("four minutes, each worse", lagging(1, 2, 3, 4), [(1, 4)]),
    ("and another", lagging(1, 2, 3, 4, 9, 9), [(2, 9)]),
    ("it holds in between", lagging(1, 2, 3, 3, 4, 5), []),
    ("not for long", lagging(1, 2, 3), []),
    ("a minute is missing", lagging(1, 2) + lagging(3, 4, start=3), []),
    ("nobody knows", lagging(None, None, None, None, None), []),
    ("nothing was read", lagging(1, 2, 3, 4, fetches=0, redirects=1), []),
    (
        "one client in two racks",
        [*lagging(1, 2, 3, 4), *lagging(1, 2, 3, 4, client_rack="az-c")],
        [(1, 4)],
    ),
)
def test_who_stays_on_a_follower_that_lags_ever_more(
    choices: list[Row], expected: list[Any]
) -> None:
    content = {"preferred_replicas": choices}
    assert read("lagging_reads", content, "lagging_minutes", "max_hw_lag") == expected


@cases(
    ("lookup_s", "others", "expected"),
    ("in the same minute", 0, {}, [("offset_too_small", 5, 3)]),
    ("in the next minute", 60, {}, [("offset_too_small", 5, 3)]),
    ("too late", 120, {}, []),
    ("before", -60, {}, []),
    ("in vain", 0, {"error_code": 6}, []),
    ("by somebody else", 0, {"client_id": "other"}, []),
    ("of another partition", 0, {"partition": 1}, []),
    ("by a follower", 0, {"replica_id": 3}, []),
    ("by duration", 0, {"position": "by_timestamp"}, [("offset_too_small", 5, 3)]),
    ("of an epoch's end", 0, {"position": "epoch_end"}, []),
)
def test_a_reset_follows_what_was_out_of_range(
    lookup_s: float, others: Row, expected: list[Any]
) -> None:
    content = {
        "fetch_faults": [fault(0, "offset_too_small")],
        "offset_lookups": [lookup(lookup_s, "earliest", 3) | others],
    }
    names = ("fault", "refused_offset", "reset_offset")
    assert read("offset_resets", content, *names) == expected


STARTS = ("broker_id", "other_broker_id", "missing_offsets", "since", "readers")


@cases(
    ("offsets", "expected"),
    ("ten minutes", [replica_minute(0, 1, 7), replica_minute(600, 2, 3)], [(1, 2, 4, at(0), 1)]),
    ("nine minutes", [replica_minute(0, 1, 7), replica_minute(540, 2, 3)], []),
    ("it came after", [replica_minute(0, 1, 7), replica_minute(600, 2, 7)], []),
    ("untold since", [replica_minute(600, 1, 7), replica_minute(0, 2, 3)], []),
    (
        "the newest starts, since the first difference",
        [
            replica_minute(0, 1, 7),
            replica_minute(300, 1, 9),
            replica_minute(600, 2, 3),
            replica_minute(700, 1, 12),
        ],
        [(1, 2, 9, at(0), 1)],
    ),
    (
        "against the one that starts first",
        [replica_minute(0, 1, 7), replica_minute(600, 2, 3), replica_minute(600, 3, 5)],
        [(1, 2, 4, at(0), 1)],
    ),
    ("of two partitions", [replica_minute(0, 1, 7), replica_minute(600, 2, 3, partition=1)], []),
    (
        "long ago",
        [replica_minute(0, 1, 7), replica_minute(600, 2, 3), replica_minute(90_000, 5, 1)],
        [],
    ),
)
def test_log_starts_that_stay_apart(offsets: list[Row], expected: list[Any]) -> None:
    content = {
        "replica_offsets": offsets,
        "preferred_replicas": [choice(0, 8), choice(60, 8), choice(0, 8, broker_id=9)],
    }
    assert read("log_start_divergence", content, *STARTS) == expected


def test_names_of_clients_are_kept_as_they_are() -> None:
    hostile = {"client_id": HOSTILE, "principal": None, "topic": HOSTILE, "topic_id": None}
    content = {"fetch_faults": [fault(0, "offset_too_large") | hostile]}
    names = ("client_id", "topic", "principal", "broker_id")
    assert read("read_problems", content, *names) == [(HOSTILE, HOSTILE, None, 2)]
