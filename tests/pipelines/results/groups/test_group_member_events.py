"""What becomes of members, of real lines and of made bodies."""

from itertools import groupby
from typing import Any

import pytest

from quotaflow.pipelines.results.declared import result_of

from ....rule_rows import Rows, compute
from . import golden_groups
from .group_rows import commit, heartbeat, left, old_heartbeat, request


def events(requests: Rows, *columns: str) -> list[tuple[Any, ...]]:
    rows = compute(result_of("group_member_events"), requests=requests)
    rows.sort(key=lambda row: (row["event_time"], row["source_offset"], row["position"]))
    return [tuple(row[name] for name in columns) for row in rows]


GOLDEN = {
    "rdk-classic": [
        ("joined", None, "rdk-a"),
        ("rejoined generation_started synced assignment_changed", 1, "rdk-a"),
        ("joined", None, "rdk-b"),
        ("rejoined", 2, "rdk-b"),
        ("rejoined generation_started synced assignment_changed", 2, "rdk-a"),
        ("synced assignment_changed", 2, "rdk-b"),
        ("rejoined", 3, "rdk-b"),
        ("rejoined generation_started", 3, "rdk-a"),
        ("synced assignment_changed", 3, "rdk-b"),
        ("synced assignment_changed", 3, "rdk-a"),
        ("left", None, "rdk-b"),
        ("rejoined generation_started synced assignment_changed", 4, "rdk-a"),
        ("joined", None, "rdk-c"),
        ("rejoined", 5, "rdk-c"),
        ("rejoined generation_started synced assignment_changed", 5, "rdk-a"),
        ("synced assignment_changed", 5, "rdk-c"),
        ("rejoined generation_started synced assignment_changed", 6, "rdk-a"),
        ("left", None, "rdk-a"),
    ],
    "rdk-consumer": [
        ("joined synced assignment_changed", 2, "rdk-a"),
        ("joined synced assignment_changed", 3, "rdk-b"),
        ("assignment_changed", 2, "rdk-a"),
        ("synced", 3, "rdk-a"),
        ("subscription_changed assignment_changed", 3, "rdk-b"),
        ("subscription_changed assignment_changed", 3, "rdk-a"),
        ("synced assignment_changed", 4, "rdk-a"),
        ("synced assignment_changed", 4, "rdk-b"),
        ("left", None, "rdk-b"),
        ("synced assignment_changed", 5, "rdk-a"),
        ("joined synced assignment_changed", 6, "rdk-c"),
        ("assignment_changed", 5, "rdk-a"),
        ("synced", 6, "rdk-a"),
        ("subscription_changed assignment_changed", 6, "rdk-c"),
        ("synced assignment_changed", 7, "rdk-a"),
        ("left", None, "rdk-a"),
    ],
    "java-share": [
        ("joined synced assignment_changed", 2, "java-s"),
        ("synced assignment_changed", 3, "java-s"),
        ("left", None, "java-s"),
    ],
}


@pytest.mark.parametrize("group", GOLDEN)
def test_events_of_real_clients(group: str) -> None:
    """Events in a row of one client at one epoch are one text, so that a case is short."""
    rows = events(golden_groups.requests(group), "event", "group_epoch", "client_id")
    runs = [
        (" ".join(event for event, *_ in run), *key)
        for key, run in groupby(rows, key=lambda row: row[1:])
    ]
    assert runs == GOLDEN[group]


STATIC = {"groupInstanceId": "i-1"}
TOPICS = {"subscribedTopicNames": ["t"]}
CASES: dict[str, tuple[Rows, list[tuple[Any, ...]]]] = {
    "an old client joins without an id": (
        [
            request(
                1,
                "JOIN_GROUP",
                {"memberId": ""} | STATIC,
                {"memberId": "m", "leader": "m", "generationId": 1, "members": [1, 2]},
            )
        ],
        [("joined", "m", 1, 0, 1, None), ("generation_started", "m", 1, 0, 1, 2)],
    ),
    "refused joins": (
        [request(1, "JOIN_GROUP", {"memberId": "m"}, {"generationId": -1}, error_code=25)],
        [("expired_notice", "m", None, 25, 1, None)],
    ),
    "errors that a client repeats are one row a minute": (
        [old_heartbeat(n / 10, 22, weight=2.0) for n in range(50)] + [old_heartbeat(61, 22)],
        [("fenced", "m", 3, 22, 100, None), ("fenced", "m", 3, 22, 1, None)],
    ),
    "a commit of an old generation": (
        [commit(1, {0: 1, 1: 1}, errors={0: 22, 1: 22}), commit(2, {0: 1})],
        [("fenced", "m", 3, 22, 1, None)],
    ),
    "a rebalance is no event of a member": ([old_heartbeat(1, 27)], []),
    "a static member leaves for a while": (
        [heartbeat(1, -2)],
        [("left_temporarily", "m", None, 0, 1, None)],
    ),
    "a heartbeat that names topics again": (
        [heartbeat(1, 4, requested=TOPICS)],
        [("subscription_changed", "m", 4, 0, 1, None)],
    ),
    "a member that reaches the epoch of its group": (
        [heartbeat(1, 4, 5), heartbeat(2, 5)],
        [("synced", "m", 5, 0, 1, None)],
    ),
    "two members leave at once, one of them unknown": (
        [left(1, ("m1", 0), ("m2", 25))],
        [("left", "m1", None, 0, 1, None), ("expired_notice", "m2", None, 25, 1, None)],
    ),
    "a body that is missing": ([old_heartbeat(1, body=None)], []),
}


@pytest.mark.parametrize("case", CASES)
def test_events_of_a_request(case: str) -> None:
    requests, expected = CASES[case]
    columns = ("event", "member_id", "group_epoch", "error_code", "requests", "members")
    assert events(requests, *columns) == expected


def test_a_reason_is_cut() -> None:
    requested = {"members": [{"memberId": "m", "reason": "x" * 9_000}]}
    ((reason,),) = events([request(1, "LEAVE_GROUP", requested, {})], "reason")
    assert reason == "x" * 300
