"""What members of share groups acquire, acknowledge and let time out."""

from typing import Any

import pytest

from quotaflow.pipelines.results.declared import result_of

from ....cases import cases, grouped
from ....rows import quota, row
from ....rule_rows import Rows, compute
from . import golden_groups
from .share_rows import ACCEPT, ID, REJECT, RELEASE, RENEW, acknowledge, fetch

RESULT = result_of("share_fetches")


def rows_of(requests: Rows, *names: str, **lookups: Rows) -> list[tuple[Any, ...]]:
    """Columns of rows of partitions, by minute and member."""
    rows = compute(RESULT, requests=requests, **lookups)
    parts = [row for row in rows if row["partition"] is not None]
    parts.sort(key=lambda row: (row["event_time"], row["member_id"]))
    return [tuple(row[name] for name in names) for row in parts]


COUNTS = ("acquired_records", "redelivered_records", "max_delivery_count")
ACKNOWLEDGED = ("accepted_records", "released_records", "rejected_records", "renewed_records")
CASES: dict[str, tuple[Rows, tuple[str, ...], list[tuple[Any, ...]]]] = {
    "ranges add up": (
        [fetch(1, {(0, 9): 1, (10, 10): 1}), fetch(2, {(11, 19): 2})],
        (*COUNTS, "acquired_ranges"),
        [(20, 9, 2, 3)],
    ),
    "one type for all of a range": (
        [
            acknowledge(1, {(0, 9): [ACCEPT], (10, 11): [REJECT]}),
            fetch(2, acknowledged={(12, 12): [RENEW]}),
        ],
        ACKNOWLEDGED,
        [(10, 0, 2, 1)],
    ),
    "a type for each": (
        [acknowledge(1, {(0, 4): [ACCEPT, 0, RELEASE, RELEASE, REJECT]})],
        (*ACKNOWLEDGED, "gap_records"),
        [(1, 2, 1, 0, 1)],
    ),
    "what the broker refuses is not acknowledged": (
        [
            acknowledge(1, {(0, 9): [ACCEPT]}, code=121),
            fetch(2, acknowledged={(10, 12): [ACCEPT]}, errors={"acknowledgeErrorCode": 121}),
        ],
        (*ACKNOWLEDGED, "acknowledge_errors", "errors", "error_code"),
        [(0, 0, 0, 0, 2, 0, 121)],
    ),
    "a partition that cannot be read": (
        [fetch(1, errors={"errorCode": 6})],
        ("errors", "acknowledge_errors", "error_code", "acquired_records"),
        [(1, 0, 6, 0)],
    ),
    "weights count": ([fetch(1, {(0, 9): 1}, weight=10.0)], COUNTS, [(100, 0, 1)]),
    "ranges that no broker answers with": (
        [fetch(1, {(9, 0): 1, (-5, 3): 1}), fetch(2, {(0, 0): 1})],
        COUNTS,
        [(1, 0, 1)],
    ),
    "more records than a number can be": (
        [acknowledge(1, {(0, 2**63 - 1): [ACCEPT]}), acknowledge(2, {(0, 2**63 - 1): [ACCEPT]})],
        ("accepted_records", "released_records"),
        [(None, 0)],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_records_of_a_minute(case: str) -> None:
    requests, names, expected = CASES[case]
    assert rows_of(requests, *names) == expected


WHY = ("member_id", "redelivered_records", "lock_timeouts", "unexplained_redeliveries")
HINDERED = (*WHY[:2], "throttled_redeliveries", "unexplained_redeliveries")
FIRST, AGAIN = fetch(0, {(0, 9): 1}), fetch(31, {(0, 9): 2}, "n")
Members = tuple[tuple[Any, ...], ...]
"""Columns of each member's row."""
REDELIVERIES: dict[Members, dict[str, Rows]] = {
    (("m", 0, 10, 0), ("n", 10, 0, 0)): {
        "a lock ran out": [FIRST, AGAIN],
        "a release that the broker refused is none": [
            FIRST,
            acknowledge(30.5, {(0, 9): [RELEASE]}, code=121),
            AGAIN,
        ],
        "the session of another member says nothing": [
            FIRST,
            acknowledge(3, {}, "x", epoch=-1),
            AGAIN,
        ],
        "renewed, then it ran out": [
            FIRST,
            acknowledge(20, {(0, 9): [RENEW]}),
            fetch(51, {(0, 9): 2}, "n"),
        ],
    },
    (("m", 0, 0, 0), ("n", 10, 0, 0)): {
        "released": [FIRST, acknowledge(3, {(0, 9): [RELEASE]}), AGAIN],
        "released with the session": [FIRST, acknowledge(3, {}, epoch=-1), AGAIN],
        "released, while the answer to that was late": [
            FIRST,
            acknowledge(40, {(0, 9): [RELEASE]}, total_time_ms=20_000.0),
            AGAIN,
        ],
    },
    (("m", 0, 0, 0), ("n", 10, 0, 10)): {
        "too early for the lock": [FIRST, fetch(20, {(0, 9): 2}, "n")],
        "renewed": [FIRST, acknowledge(20, {(0, 9): [RENEW]}), AGAIN],
        "a delivery in between is in no line": [FIRST, fetch(31, {(0, 9): 3}, "n")],
        "another group": [FIRST | {"group_id": "h"}, AGAIN],
        "lines of a sample may lack the release": [FIRST | {"weight": 2.0}, AGAIN],
    },
    (("n", 10, 0, 10),): {"the delivery before is in no line": [AGAIN]},
    (("m", 10, 10, 0),): {"the member itself gets them": [FIRST, fetch(31, {(0, 9): 2})]},
    (("m", 0, 6, 0), ("n", 10, 0, 0)): {
        "released in part: the others ran out": [FIRST, acknowledge(3, {(2, 5): [RELEASE]}), AGAIN]
    },
    (("m", 0, 0, 0), ("n", 5, 0, 0)): {
        "released one by one": [
            FIRST,
            acknowledge(3, {(0, 9): [ACCEPT] * 5 + [RELEASE] * 5}),
            fetch(31, {(5, 9): 2}, "n"),
        ]
    },
    (("m", 0, 5, 0), ("n", 10, 0, 5)): {"a part of it": [FIRST, fetch(31, {(5, 14): 2}, "n")]},
    (("m", 0, 5, 0), ("n", 10, 0, 0), ("x", 0, 5, 0)): {
        "of two ranges": [fetch(0, {(0, 4): 1}), fetch(0.5, {(5, 9): 1}, "x"), AGAIN]
    },
    (("m", 10, 10, 0), ("n", 10, 0, 0)): {
        "twice": [
            *(FIRST, AGAIN, fetch(59, {(0, 9): 3}, "m")),
            acknowledge(40, {(0, 9): [RELEASE]}, "n"),
        ]
    },
}


@cases(("requests", "expected"), *grouped(REDELIVERIES))
def test_why_records_come_again(requests: Rows, expected: Members) -> None:
    assert rows_of(requests, *WHY) == [*expected]


LIMITED: dict[Members, dict[str, Rows]] = {
    (("n", 10, 10, 0),): {
        "its delivery before was in a throttled answer": [fetch(0), AGAIN],
        "to another member": [fetch(0, member="x"), AGAIN],
    },
    (("n", 10, 0, 10),): {
        "that of another group": [fetch(0, group_id="h"), AGAIN],
        "at another broker": [fetch(0, broker_id=2), AGAIN],
        "too short ago for the lock": [fetch(20), AGAIN],
    },
    (("m", 0, 0, 0), ("n", 10, 10, 0)): {
        "after one that a client got": [FIRST, fetch(1), fetch(59, {(0, 9): 3}, "n")]
    },
    (("m", 0, 0, 0), ("n", 10, 0, 10)): {
        "before one that a client got": [
            *(fetch(0), fetch(1, {(0, 9): 1})),
            fetch(59, {(0, 9): 3}, "n"),
        ]
    },
    (("m", 0, 0, 0), ("n", 10, 0, 0)): {
        "of a record whose lock ran out": [FIRST, fetch(0.5), AGAIN]
    },
}


@cases(("requests", "expected"), *grouped(LIMITED))
def test_a_throttled_answer_is_a_delivery_that_no_client_sees(
    requests: Rows, expected: Members
) -> None:
    slowed = [
        row if "acquiredRecords" in row["body"] else row | {"throttle_time_ms": 900.0}
        for row in requests
    ]
    assert rows_of(slowed, *HINDERED) == [*expected]


def test_a_delivery_of_more_than_ten_minutes_ago_is_not_looked_for() -> None:
    early, late = fetch(0, {(0, 9): 1}), fetch(600 + 59, {(0, 9): 2}, "n")
    later = fetch(660, {(0, 9): 2}, "n")
    assert rows_of([early, late], *WHY) == [("m", 0, 0, 0), ("m", 0, 10, 0), ("n", 10, 0, 0)]
    assert rows_of([early, later], *WHY) == [("m", 0, 0, 0), ("n", 10, 0, 10)]


def test_whole_requests_are_counted_once_with_what_the_quota_leaves() -> None:
    requests = [
        fetch(1, {(0, 9): 1}),
        fetch(2, throttle_time_ms=39_999.0),
        fetch(3, error_code=122, throttle_time_ms=1.0),
        acknowledge(4, {(0, 9): [ACCEPT]}),
        acknowledge(5, {}, "kept not") | {"body": None},
    ]
    of_bob = quota(0, "consumer_byte_rate", 20_000.0, user="bob")
    rows = compute(RESULT, requests=requests, client_quotas=[of_bob])
    names = ("member_id", "fetches", "acknowledges", "throttled_requests", "throttle_time_ms")
    names += ("max_throttle_time_ms", "errors", "error_code", "quota_bytes", "max_bytes")
    whole = [tuple(row[name] for name in names) for row in rows if row["partition"] is None]
    assert sorted(whole, key=str) == [
        ("m", 3, 1, 2, 40_000, 39_999, 1, 122, 200_000, 1_000_000),
        (None, 0, 1, 0, 0, 0, 0, None, None, None),
    ]
    assert all(row["fetches"] == 0 for row in rows if row["partition"] is not None)


def test_topics_get_their_names() -> None:
    requests = [fetch(1, {(0, 0): 1})]
    named = row("topics", 0, {}, topic_id=ID, topic="t")
    assert rows_of(requests, "topic", topics=[named]) == [("t",)]
    assert rows_of(requests, "topic") == [(None,)]


GOLDEN = ("group_id", "principal", "acquired_records", "acquired_ranges", "redelivered_records")
GOLDEN += ("max_delivery_count", *ACKNOWLEDGED, "lock_timeouts", "unexplained_redeliveries")


def test_share_consumers_of_a_broker() -> None:
    """Java's console consumer of 4.3.1: stopped, its successor, one each of --release, --reject,
    and under a quota of bytes."""
    rows = compute(RESULT, requests=golden_groups.requests("share-fetches"))
    parts = [row for row in rows if row["partition"] is not None]
    parts.sort(key=lambda row: (row["group_id"], row["event_time"], row["principal"]))
    assert [tuple(row[name] for name in GOLDEN) for row in parts] == [
        ("java-refuses", "User:heidi", 582, 1, 0, 1, 0, 0, 50, 0, 0, 0),
        ("java-returns", "User:grace", 1_746, 3, 582, 2, 0, 1_500, 0, 0, 0, 0),
        ("java-stops", "User:grace", 1_200, 3, 582, 2, 1_200, 0, 0, 0, 0, 0),
        ("java-stops", "User:heidi", 582, 1, 0, 1, 0, 0, 0, 0, 582, 0),
        ("java-throttled", "User:ivan", 388, 1, 0, 1, 388, 0, 0, 0, 0, 0),
    ]
    whole = {row["group_id"]: row for row in rows if row["partition"] is None and row["fetches"]}
    names = ("fetches", "throttled_requests", "throttle_time_ms", "max_bytes", "lock_timeout_ms")
    assert [whole["java-throttled"][name] for name in names] == [2, 1, 9_658, 52_428_800, 30_000]
    assert whole["java-stops"]["lock_timeout_ms"] == 15_000


def test_records_of_a_throttled_group_of_a_broker() -> None:
    """One consumer under 20,000 bytes/s, without its empty answers: all that came again had been
    delivered to nobody."""
    rows = compute(RESULT, requests=golden_groups.requests("share-throttled"))
    names = ("acquired_records", "redelivered_records", "throttled_redeliveries", "lock_timeouts")
    names += ("throttled_requests", "throttle_time_ms")
    totals = {name: sum(row[name] for row in rows) for name in names}
    assert list(totals.values()) == [812, 424, 424, 0, 5, 29_936]
