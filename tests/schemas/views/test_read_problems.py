"""Who cannot read as it should, what lasts, and what to do about it."""

from typing import Any

from ...cases import cases
from ...rows import HOSTILE, Row, at, choice, fault, lookup, replica_minute, row
from .view_tables import Picked, Tables, assert_outcomes, in_table, picked, view

OLD_JAVA = {"client_software_version": "3.3.2"}
LOOP = fault(0, "redirect_loop", 5, broker_id=1, preferred_read_replica=2)


def lagging(*lags: int | None, start: int = 0, **others: Any) -> list[Row]:
    """What a consumer read of follower 2 in minutes one after the other."""
    return [
        choice(60 * n, 8, broker_id=2, hw_lag=lag, **others) for n, lag in enumerate(lags, start)
    ]


def read(name: str, content: Tables, *columns: str) -> Picked:
    return picked(view(name, content), *columns)


ADVICE = in_table(
    "fetch_faults",
    {
        ("align_log_starts", 2): {
            "the leader holds what the follower deleted": [
                fault(0, "offset_too_small", answers_leader_has=1)
            ]
        },
        ("extend_retention", 2): {
            "deleted everywhere": [fault(0, "offset_too_small", answers_leader_has=0)]
        },
        ("update_client", 3): {
            "it does not reset": [
                fault(0, "offset_too_small", 9, answers_leader_has=0),
                fault(0, "out_of_range_spin", 9, broker_id=3),
            ]
        },
        ("update_client", 1): {"it does not go where it is sent": [LOOP]},
        ("check_replication", 2): {
            "it goes, and is refused": [LOOP, fault(0, "unavailable_offset", 4)],
            "often too early": [fault(60 * n, "uncommitted_offset", 5) for n in range(2)],
        },
        ("check_replication", 3): {
            "the worse of two followers": [
                fault(0, "unavailable_offset"),
                fault(60, "unavailable_offset", 9, broker_id=3),
            ]
        },
        ("check_offsets", 2): {"past the end": [fault(0, "offset_too_large")]},
        ("refresh_metadata", 2): {
            "with old metadata of the leader": [
                fault(60 * n, "not_leader_or_follower", 5) for n in range(2)
            ]
        },
        (None, None): {
            "nobody knows what the leader holds": [
                fault(0, "offset_too_small", answers_leader_has=None)
            ],
            "some times too early": [fault(0, "uncommitted_offset", 9)],
            "another error": [fault(0, "kafka_storage_error", 99)],
        },
    },
)


def test_advice_goes_by_the_worst() -> None:
    assert_outcomes(ADVICE, "read_problems", "advice", "broker_id")


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
    "lagging_minutes": 5,
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


VERSIONS = {
    "update_client": ("3.3.2", "7.3.1-ccs"),
    "check_replication": ("3.4.0", "7.4.0-ce", "x"),
}


def test_old_java_clients_stay_on_a_lagging_follower() -> None:
    outcomes = {
        (advice, 2, True): {
            version: [fault(0, "uncommitted_offset", client_software_version=version)]
            for version in versions
        }
        for advice, versions in VERSIONS.items()
    }
    given = in_table("fetch_faults", outcomes, preferred_replicas=lagging(1, 2, 3, 4))
    names = ("advice", "broker_id", "stays_on_lagging_follower")
    assert_outcomes(given, "read_problems", *names)


@cases(
    ("second", "version", "expected"),
    ("still", 60, "2.9.0", "update_client"),
    ("the new one just came", 60, "2.10.0", "update_client"),
    ("the new one for hours", 7_200, "2.10.0", None),
    ("another name of a version", 7_200, "dev", "update_client"),
)
def test_a_client_that_was_updated_since_is_not_to_be_updated(
    second: float, version: str, expected: str | None
) -> None:
    spin = fault(0, "out_of_range_spin", client_software_version="2.9.0")
    client = {name: spin[name] for name in ("principal", "client_id")} | {"api": "FETCH"}
    uses = [
        row("request_times", seen, client, software=[{"name": "librdkafka", "version": each}])
        for seen, each in ((0, "2.9.0"), (second, version))
    ]
    content = {"fetch_faults": [spin], "request_times": uses}
    assert read("read_problems", content, "advice") == [(expected,)]


def test_the_least_of_several_versions_is_least_by_number() -> None:
    versions = ["2.10.0", "2.9.0", "dev", None]
    faults = [
        fault(n, "offset_too_small", client_software_version=v) for n, v in enumerate(versions)
    ]
    content = {"fetch_faults": faults}
    assert read("read_problems", content, "client_software_version") == [("2.9.0",)]


LAGGING = in_table(
    "preferred_replicas",
    {
        (4, 4): {
            "four minutes, each worse": lagging(1, 2, 3, 4),
            "one client in two racks": (
                lagging(1, 2, 3, 4) + lagging(1, 2, 3, 4, client_rack="az-c")
            ),
        },
        (5, 9): {"and one more": lagging(1, 2, 3, 4, 9, 9)},
        (): {
            "it holds in between": lagging(1, 2, 3, 3, 4, 5),
            "not for long": lagging(1, 2, 3),
            "a minute is missing": lagging(1, 2) + lagging(3, 4, start=3),
            "nobody knows": lagging(None, None, None, None, None),
            "nothing was read": lagging(1, 2, 3, 4, fetches=0, redirects=1),
        },
    },
)
RESETS = in_table(
    "offset_lookups",
    {
        ("offset_too_small", 5, 3): {
            "in the same minute": [lookup(0, "earliest", 3)],
            "in the next minute": [lookup(60, "earliest", 3)],
            "by duration": [lookup(0, "by_timestamp", 3)],
        },
        (): {
            "too late": [lookup(120, "earliest", 3)],
            "before": [lookup(-60, "earliest", 3)],
            "in vain": [lookup(0, "earliest", 3, error_code=6)],
            "by somebody else": [lookup(0, "earliest", 3, client_id="other")],
            "of another partition": [lookup(0, "earliest", 3, partition=1)],
            "by a follower": [lookup(0, "earliest", 3, replica_id=3)],
            "of an epoch's end": [lookup(0, "epoch_end", 3)],
        },
    },
    fetch_faults=[fault(0, "offset_too_small")],
)


def test_who_stays_on_a_follower_that_lags_ever_more() -> None:
    assert_outcomes(LAGGING, "lagging_reads", "lagging_minutes", "max_hw_lag")


def test_a_reset_follows_what_was_out_of_range() -> None:
    assert_outcomes(RESETS, "offset_resets", "fault", "refused_offset", "reset_offset")


STARTS = ("broker_id", "other_broker_id", "missing_offsets", "since", "readers")


def log_starts(*minutes: tuple[int, int, int]) -> list[Row]:
    """Where a replica's log starts: the second, the broker and the offset."""
    return [replica_minute(*minute) for minute in minutes]


APART = in_table(
    "replica_offsets",
    {
        (1, 2, 4, at(0), 1): {
            "ten minutes": log_starts((0, 1, 7), (600, 2, 3)),
            "against the one that starts first": log_starts((0, 1, 7), (600, 2, 3), (600, 3, 5)),
        },
        (1, 2, 9, at(0), 1): {
            "the newest starts, since the first difference": log_starts(
                (0, 1, 7), (300, 1, 9), (600, 2, 3), (700, 1, 12)
            )
        },
        (): {
            "nine minutes": log_starts((0, 1, 7), (540, 2, 3)),
            "it came after": log_starts((0, 1, 7), (600, 2, 7)),
            "untold since": log_starts((600, 1, 7), (0, 2, 3)),
            "of two partitions": [*log_starts((0, 1, 7)), replica_minute(600, 2, 3, partition=1)],
            "long ago": log_starts((0, 1, 7), (600, 2, 3), (90_000, 5, 1)),
        },
    },
    preferred_replicas=[choice(0, 8), choice(60, 8), choice(0, 8, broker_id=9)],
)


def test_log_starts_that_stay_apart() -> None:
    assert_outcomes(APART, "log_start_divergence", *STARTS)


def test_names_of_clients_are_kept_as_they_are() -> None:
    hostile = {"client_id": HOSTILE, "principal": None, "topic": HOSTILE, "topic_id": None}
    content = {"fetch_faults": [fault(0, "offset_too_large") | hostile]}
    names = ("client_id", "topic", "principal", "broker_id")
    assert read("read_problems", content, *names) == [(HOSTILE, HOSTILE, None, 2)]
