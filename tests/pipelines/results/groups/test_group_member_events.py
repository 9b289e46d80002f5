"""What becomes of members, of real lines and of made bodies."""

from itertools import groupby
from typing import Any

import pytest

from quotaflow.pipelines.results.declared import result_of

from .... import case_tables
from ....rule_rows import Rows, compute
from . import golden_groups
from .group_rows import commit, heartbeat, left, old_heartbeat, request


def events(requests: Rows, *columns: str) -> list[tuple[Any, ...]]:
    rows = compute(result_of("group_member_events"), requests=requests)
    rows.sort(key=lambda row: (row["event_time"], row["source_offset"], row["position"]))
    return [tuple(row[name] for name in columns) for row in rows]


GOLDEN = case_tables.table(__file__, "GOLDEN")


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
    **case_tables.table(
        __file__, "CASES", request, commit, old_heartbeat, heartbeat, left, TOPICS=TOPICS
    ),
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
    "errors that a client repeats are one row a minute": (
        [old_heartbeat(n / 10, 22, weight=2.0) for n in range(50)] + [old_heartbeat(61, 22)],
        [("fenced", "m", 3, 22, 100, None), ("fenced", "m", 3, 22, 1, None)],
    ),
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
