"""Rebalances of real groups, and of groups that were made to have each trigger."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest

from quotaflow.pipelines.results.declared import result_of

from ... import case_tables
from ...pipelines.results.groups import golden_groups
from ...rows import Row, at, minute_of, row
from ...rule_rows import compute
from .memory_tables import MemoryTables
from .view_tables import Picked, Tables, assert_shown, picked

JOINED, LEFT, MISSED = "member_joined", "member_left", "missed_heartbeats"
SUBSCRIBED, PARTITIONS, UNKNOWN = "subscription_changed", "partitions_changed", "unknown"
GOLDEN = case_tables.table(
    __file__, "GOLDEN", JOINED=JOINED, SUBSCRIBED=SUBSCRIBED, LEFT=LEFT, MISSED=MISSED
)
COLUMNS = ("group_epoch", "trigger", "trigger_client_id", "members", "stopped_ms")


@pytest.fixture(scope="module")
def captured() -> MemoryTables:
    """Tables of the captured groups."""
    tables, requests = MemoryTables(), golden_groups.requests()
    for name in ("group_members", "group_member_events"):
        tables.put(name, compute(result_of(name), requests=requests))
    return tables


@pytest.mark.parametrize("group", GOLDEN)
def test_rebalances_of_real_groups(captured: MemoryTables, group: str) -> None:
    sql = f"SELECT * FROM rebalances WHERE group_id = '{group}' ORDER BY group_epoch"
    rows = captured.rows(sql)
    assert picked(rows, *COLUMNS) == GOLDEN[group]
    assert all(row["is_complete"] for row in rows)


def event(second: float, member: str, name: str, epoch: int | None, **others: Any) -> Row:
    """An event of a classic group with assignor range; `waited_s` is how long the request took."""
    waited = others.pop("waited_s", 0)
    group = {"group_id": "g", "group_type": "classic", "group_epoch": epoch, "assignor": "range"}
    given = {"member_id": member, "client_id": f"c-{member}", "principal": "User:a", "event": name}
    given |= {"error_code": 0, "requests": 1, "coordinator_id": 1, "subscribed_topics": ["t"]}
    times = {"received_time": at(second) - timedelta(seconds=waited)}
    return row("group_member_events", second, group | given | times | others)


def generation(
    second: float, epoch: int, *members: str, first: str | None = None, **others: Any
) -> Iterable[Row]:
    """All members join a generation at once, the `first` of them a second before the others."""
    synced = set(others.pop("synced", members))
    topics, reason = others.pop("topics", ["t"]), others.pop("reason", None)
    for member in members:
        is_first = member == (first or members[0])
        waited = 1.0 if is_first else 0.1
        named = {"subscribed_topics": topics, "reason": reason} if is_first else {}
        yield event(second, member, "rejoined", epoch, waited_s=waited, **(others | named))
        if member in synced:
            yield event(second + 0.5, member, "synced", epoch)
    yield event(second, members[0], "generation_started", epoch, members=len(members), **others)


def reached(second: float, epoch: int, *members: str) -> Iterable[Row]:
    """Members of a consumer group reach an epoch."""
    for member in members:
        yield event(second, member, "synced", epoch, group_type="consumer")


def came(second: float, epoch: int, member: str, **others: Any) -> Iterable[Row]:
    """A member joins at epoch 0, and is answered with an epoch."""
    for name in ("joined", "synced"):
        yield event(second, member, name, epoch, **{"group_type": "consumer"} | others)


def alive(second: float, member: str) -> Row:
    """A minute of group_members with the last request of a member at this time."""
    given = {
        "group_id": "g",
        "member_id": member,
        "client_id": f"c-{member}",
        "principal": "User:a",
    }
    given |= {"group_type": "consumer", "last_request_time": at(second)}
    return row("group_members", minute_of(second), given, heartbeat_interval_ms=5_000)


def both(*parts: Iterable[Row]) -> Tables:
    return {"group_member_events": [row for part in parts for row in part]}


BEFORE = list(generation(0, 4, "a", "b"))
FIRST = (4, UNKNOWN, None, None, "no_members_before", True)
CASES: dict[str, tuple[Tables, Picked]] = {
    "a first generation that is seen": (
        both(generation(0, 1, "a")),
        [(1, JOINED, "a", None, "no_members_before", True)],
    ),
    "a new member": (
        both(BEFORE, generation(60, 5, "a", "b", "c", first="c")),
        [FIRST, (5, JOINED, "c", 600, None, True)],
    ),
    "a member left before the others came back": (
        both(BEFORE, [event(58, "b", "left", None)], generation(60, 5, "a")),
        [FIRST, (5, LEFT, "b", 1_500, None, True)],
    ),
    "all left before the next one came": (
        both(
            BEFORE,
            [event(10, "a", "left", None), event(11, "b", "left", None)],
            generation(60, 6, "c"),
        ),
        [FIRST, (6, JOINED, "c", None, "no_members_before", True)],
    ),
    "a leave that was refused": (
        both(BEFORE, [event(58, "b", "left", None, error_code=25)], generation(60, 5, "a")),
        [FIRST, (5, MISSED, "b", 1_500, None, True)],
    ),
    "a member that came too late for the barrier of another": (
        both(BEFORE, generation(60, 5, "c", "a", first="c")),
        [FIRST, (5, JOINED, "c", 600, None, True)],
    ),
    "other topics": (
        both(BEFORE, generation(60, 5, "a", "b", topics=["t", "u"])),
        [FIRST, (5, SUBSCRIBED, "a", 1_500, None, True)],
    ),
    "other partitions, as the leader says": (
        both(BEFORE, generation(60, 5, "a", "b", reason="cached metadata has changed")),
        [FIRST, (5, PARTITIONS, "a", 1_500, None, True)],
    ),
    "nothing that shows why": (
        both(BEFORE, generation(60, 5, "a", "b")),
        [FIRST, (5, UNKNOWN, None, 1_500, None, True)],
    ),
    "a member without an assignment": (
        both(BEFORE, generation(60, 5, "a", "b", synced=("a",))),
        [FIRST, (5, UNKNOWN, None, None, "incomplete", False)],
    ),
    "cooperative members do not stop": (
        both(BEFORE, generation(60, 5, "a", "b", assignor="cooperative-sticky")),
        [FIRST, (5, UNKNOWN, None, None, "no_stop", True)],
    ),
    "an assignor of one's own": (
        both(BEFORE, generation(60, 5, "a", "b", assignor="ours")),
        [FIRST, (5, UNKNOWN, None, None, "unknown_assignor", True)],
    ),
    "a later answer of the same generation changes nothing": (
        both(BEFORE, [event(900, "b", "rejoined", 4), event(901, "b", "synced", 4)]),
        [FIRST],
    ),
    "a group that was removed and made again": (
        both(BEFORE, generation(600, 1, "z")),
        [FIRST, (1, JOINED, "z", None, "no_members_before", True)],
    ),
    "consumer: a member that fell silent": (
        both(reached(0, 7, "a", "b"), reached(90, 8, "a"))
        | {"group_members": [alive(90, "a"), alive(20, "b")]},
        [(7, UNKNOWN, None, None, "no_stop", True), (8, MISSED, "b", None, "no_stop", True)],
    ),
    "consumer: a member that is late": (
        both(reached(0, 7, "a", "b"), reached(90, 8, "a"))
        | {"group_members": [alive(90, "a"), alive(89, "b")]},
        [(7, UNKNOWN, None, None, "no_stop", True), (8, UNKNOWN, None, None, "no_stop", False)],
    ),
    "consumer: a member that skipped an epoch": (
        both(reached(0, 7, "a", "b"), reached(90, 8, "a"), reached(95, 9, "a", "b"))
        | {"group_members": [alive(95, "a"), alive(95, "b")]},
        [
            (7, UNKNOWN, None, None, "no_stop", True),
            (8, UNKNOWN, None, None, "no_stop", True),
            (9, UNKNOWN, None, None, "no_stop", True),
        ],
    ),
    # Of a share group: its coordinator first made the state of its partitions.
    "share: a member that joined an epoch ago": (
        both(
            came(0, 2, "a", group_type="share"),
            [event(5, "a", "synced", 3, group_type="share")],
        )
        | {"group_members": [alive(5, "a")]},
        [(2, JOINED, "a", None, "no_stop", True), (3, UNKNOWN, None, None, "no_stop", True)],
    ),
    "consumer: a member that joined at an epoch of others": (
        both(reached(0, 7, "a"), came(30, 7, "b"), reached(35, 8, "a", "b"))
        | {"group_members": [alive(35, "a"), alive(35, "b")]},
        [(7, UNKNOWN, None, None, "no_stop", True), (8, JOINED, "b", None, "no_stop", True)],
    ),
    "consumer: another member heard of the new epoch sooner": (
        both(reached(0, 7, "a"), reached(30, 8, "a"), came(30.02, 8, "b"), reached(35, 9, "a"))
        | {"group_members": [alive(35, "a"), alive(35, "b")]},
        [
            (7, UNKNOWN, None, None, "no_stop", True),
            (8, JOINED, "b", None, "no_stop", True),
            (9, UNKNOWN, None, None, "no_stop", False),
        ],
    ),
    "a member of an earlier generation": (
        both(BEFORE, generation(60, 5, "a"), generation(120, 6, "b", "a")),
        [
            FIRST,
            (5, UNKNOWN, None, 1_500, None, True),
            (6, UNKNOWN, None, 600, None, True),
        ],
    ),
    "consumer: topics that are named again are no change": (
        both(
            reached(0, 7, "a"),
            [
                event(1, "a", "subscription_changed", 7, group_type="consumer"),
                event(2, "a", "subscription_changed", 7, group_type="consumer"),
            ],
            reached(90, 8, "a"),
            [event(91, "a", "subscription_changed", 8, group_type="consumer")],
            reached(180, 9, "a"),
        )
        | {"group_members": [alive(180, "a")]},
        [
            (7, UNKNOWN, None, None, "no_stop", True),
            (8, SUBSCRIBED, "a", None, "no_stop", True),
            (9, UNKNOWN, None, None, "no_stop", True),
        ],
    ),
}


def test_triggers_and_stops() -> None:
    columns = ("group_epoch", "trigger", "trigger_member_id", "stopped_ms", "stopped_reason")
    assert_shown(CASES, "rebalances ORDER BY started_at", *columns, "is_complete")
