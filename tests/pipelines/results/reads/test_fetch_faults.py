"""What went wrong when consumers fetched."""

import pytest

from quotaflow.pipelines.results.declared import result_of
from quotaflow.udfs.rules.fetch_fault import ERRORS

from ....oracle.rules import fetch_fault as rule
from ....rows import Row, minute
from .replica_rows import BEFORE, answered, computed, fetch, replica, seen

THREE = {
    "topics": [seen(BEFORE, topic_id="id1", topic="orders")],
    "replicas": [replica(n) for n in (1, 2, 3)],
}
LEADER, FOLLOWER = 1, 2
OFFSETS_BEFORE = [
    fetch(1, LEADER, answered(9, log_start_offset=10, high_watermark=100), client_id="fine"),
    fetch(2, FOLLOWER, answered(9, log_start_offset=20, high_watermark=90), client_id="fine"),
]


def refused(offset: int | None, **others: object) -> Row:
    none = {"high_watermark": -1, "log_start_offset": -1}
    return answered(0, error_code=1, fetch_offset=offset, **none | others)


def named(second: float, **others: object) -> Row:
    sent = answered(0, preferred_read_replica=2, fetch_offset=50, log_start_offset=10)
    return fetch(second, LEADER, sent, **{"connection_id": "one"} | others)


CASES: dict[str, tuple[list[Row], dict[str, list[Row]], dict[tuple[int, int, str], Row]]] = {
    "cases 1 to 4, by what was told in the minute": (
        [
            *OFFSETS_BEFORE,
            fetch(3, FOLLOWER, answered(0, fetch_offset=91, high_watermark=90)),
            fetch(4, FOLLOWER, refused(95)),
            fetch(5, FOLLOWER, refused(15), client_software_name="a", client_software_version="2"),
            fetch(6, FOLLOWER, refused(9), client_software_name="a", client_software_version="1"),
            fetch(7, FOLLOWER, refused(101), refused(None, partition=1)),
            fetch(8, LEADER, refused(101)),
        ],
        THREE,
        {
            (0, 2, "uncommitted_offset"): {"answers": 1, "min_fetch_offset": 91}
            | {"leader_id": 1, "log_start_offset": 20, "end_offset": 90, "topic": "orders"},
            (0, 2, "unavailable_offset"): {"answers": 1, "answers_leader_has": 1}
            | {"leader_log_start_offset": 10, "leader_end_offset": 100},
            (0, 2, "offset_too_small"): {"answers": 2, "answers_leader_has": 1}
            | {"min_fetch_offset": 9, "max_fetch_offset": 15}
            | {"client_software_name": "a", "client_software_version": "1"},
            (0, 2, "offset_too_large"): {"answers": 1, "answers_leader_has": 0},
            (0, 1, "offset_too_large"): {
                "answers": 1,
                "end_offset": 100,
                "preferred_read_replica": None,
            },
            (0, 2, "out_of_range_unknown"): {"partition": 1, "min_fetch_offset": None}
            | {"log_start_offset": None, "answers_leader_has": None, "leader_id": None},
        },
    ),
    "by what was told in the minute before, not in the next": (
        [*OFFSETS_BEFORE, fetch(61, FOLLOWER, refused(95)), fetch(121, FOLLOWER, refused(95))],
        THREE,
        {
            (1, 2, "unavailable_offset"): {"end_offset": 90},
            (2, 2, "out_of_range_unknown"): {"end_offset": None},
        },
    ),
    "who answers followers leads, whatever the snapshot says": (
        [
            *OFFSETS_BEFORE,
            fetch(3, 3, answered(9, log_start_offset=10, high_watermark=100), replica_id=1),
            fetch(4, LEADER, refused(101)),
            fetch(5, 3, refused(101)),
        ],
        THREE,
        {
            (0, 1, "offset_too_large"): {"leader_id": 3, "leader_end_offset": 100},
            (0, 3, "offset_too_large"): {"leader_id": 3},
        },
    ),
    "a follower tells where its log ends": (
        [
            OFFSETS_BEFORE[0],
            fetch(
                3,
                LEADER,
                answered(9, high_watermark=100, fetch_offset=93, follower_log_start_offset=30),
                replica_id=FOLLOWER,
            ),
            fetch(4, FOLLOWER, refused(95)),
            fetch(5, FOLLOWER, refused(25)),
        ],
        {"topics": THREE["topics"]},
        {
            (0, 2, "unavailable_offset"): {"end_offset": 93, "log_start_offset": 30},
            (0, 2, "offset_too_small"): {"leader_log_start_offset": 10, "answers_leader_has": 1},
        },
    ),
    "errors by their names; followers' are nobody's": (
        [
            fetch(1, 1, answered(0, error_code=6, high_watermark=-1, fetch_offset=7)),
            fetch(2, 1, answered(0, error_code=6, high_watermark=-1, fetch_offset=9)),
            fetch(3, 1, answered(0, error_code=74, fetch_offset=9), replica_id=3),
        ],
        {},
        {(0, 1, "not_leader_or_follower"): {"answers": 2, "topic": None, "max_fetch_offset": 9}},
    ),
    "a loop is one connection named again and again": (
        [
            *(named(n) for n in range(3)),
            *(named(n, connection_id="two") for n in range(4)),
            *(named(n, connection_id=f"c{n}", client_id="restarts") for n in range(9)),
            *(named(60 * n, client_id="follows") for n in range(3)),
            fetch(9, FOLLOWER, refused(50)),
        ],
        {},
        {
            (0, 1, "redirect_loop"): {
                "answers": 7,
                "preferred_read_replica": 2,
                "min_fetch_offset": 50,
            }
            | {"client_id": "reader"},
            (0, 2, "out_of_range_unknown"): {"answers": 1},
        },
    ),
    "a spin is one offset again and again": (
        [
            *(fetch(n, 1, refused(5), connection_id="one") for n in range(3)),
            *(fetch(n, 1, refused(6), connection_id=f"c{n}") for n in range(3)),
            *(fetch(n, 1, refused(n), connection_id="moves") for n in range(10, 20)),
        ],
        {},
        {
            (0, 1, "out_of_range_spin"): {"answers": 3, "min_fetch_offset": 5}
            | {"max_fetch_offset": 5},
            (0, 1, "out_of_range_unknown"): {"answers": 16, "max_fetch_offset": 19},
        },
    ),
}


def test_the_cases_have_each_fault_by_the_name_of_the_rule() -> None:
    faults = {fault for _, _, expected in CASES.values() for _, _, fault in expected}
    names = {rule.UNCOMMITTED, rule.UNAVAILABLE, rule.TOO_SMALL, rule.TOO_LARGE, rule.UNKNOWN}
    assert faults >= names | {rule.REDIRECT_LOOP, rule.SPIN, ERRORS[6]}


@pytest.mark.parametrize("case", CASES)
def test_what_went_wrong(case: str) -> None:
    fetches, snapshots, expected = CASES[case]
    got = computed(result_of("fetch_faults"), fetches=fetches, **snapshots)
    rows = {(minute(row), row["broker_id"], row["fault"]): row for row in got}
    assert {key: {name: rows[key][name] for name in row} for key, row in expected.items()} == (
        expected
    )
    assert rows.keys() == expected.keys()
    assert len(rows) == len(got)
