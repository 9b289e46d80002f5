"""Rows of groups for tables of views: two members with a rebalance, and a Streams application."""

from typing import Any

from ...rows import HOSTILE, Row, at, minute_of, row

APPLICATION = "shop"
_PROCESS = "7b8cc72f-7672-4912-802f-fdcca75ef68c"
_THREAD = f"{APPLICATION}-{_PROCESS}-StreamThread-1-consumer"


def member(second: float, member_id: str | None, **others: Any) -> Row:
    """A minute of a member of a classic group, with its last request at this second."""
    counts: Row = dict.fromkeys(("joins", "syncs", "leaves", "fenced_answers"), 0)
    counts |= {"heartbeats": 20, "commits": 6, "errors": 1, "rebalancing_answers": 1}
    counts |= {"throttle_time_ms": 0, "unreadable_protocols": 0}
    client = {"client_software_name": "librdkafka", "client_software_version": "2.10.0"}
    client |= {"client_address": "10.0.0.7", "group_type": "classic", "assignor": "range"}
    return row(
        "group_members",
        minute_of(second),
        counts | client | others,
        group_id=HOSTILE,
        member_id=member_id,
        coordinator_id=1,
        group_epoch=3,
        subscribed_topics=["orders"],
        assigned_partitions=[{"topic": "orders", "topic_id": None, "partition": 0}],
        last_request_time=at(second),
    )


def committed(second: float, partition: int | None, offset: int | None, **others: Any) -> Row:
    """A minute of commits of a group."""
    offsets = dict.fromkeys(("first_offset", "last_offset", "max_offset"), offset)
    counts = {"commits": 4, "failed_commits": 0, "is_transactional": False, "went_back": False}
    given = {"group_id": HOSTILE, "member_id": "m1", "partition": partition} | offsets | counts
    return row(
        "group_commits", minute_of(second), {"last_commit_time": at(second)} | given | others
    )


def happened(second: float, member_id: str, event: str, epoch: int | None, **others: Any) -> Row:
    """An event of a member of a classic group."""
    group = {
        "group_id": HOSTILE,
        "group_type": "classic",
        "group_epoch": epoch,
        "assignor": "range",
    }
    given = {"member_id": member_id, "event": event, "error_code": 0, "received_time": at(second)}
    given |= {"requests": 1, "coordinator_id": 1, "api": "JOIN_GROUP", "position": 1}
    return row("group_member_events", second, group | given | others)


def shared(second: float, partition: int | None, **others: Any) -> Row:
    """A minute of share_fetches: of a partition, or of whole requests."""
    ids = {"group_id": HOSTILE, "member_id": "s1", "partition": partition}
    given = ids | dict.fromkeys(_SHARE_COUNTS, 0)
    if partition is None:
        given |= {"topic": None, "topic_id": None, "fetches": 9, "max_throttle_time_ms": 0}
        given |= {"max_bytes": 52_428_800, "lock_timeout_ms": 30_000}
    else:
        given |= {"acquired_records": 80, "acquired_ranges": 4, "accepted_records": 80}
        given |= {"max_delivery_count": 1}
    return row("share_fetches", minute_of(second), given | others)


_SHARE_COUNTS = (
    *("fetches", "acknowledges", "throttled_requests", "throttle_time_ms", "acquired_records"),
    *("acquired_ranges", "redelivered_records", "accepted_records", "released_records"),
    *("rejected_records", "renewed_records", "gap_records", "lock_timeouts"),
    *("throttled_redeliveries", "unexplained_redeliveries", "errors", "acknowledge_errors"),
)

GROUPS: dict[str, list[Row]] = {
    "group_members": [
        member(5, "m1"),
        member(65, "m1", rack_id="az-a"),
        member(5, "m2", client_id=HOSTILE, subscribed_topics=None),
        member(300, None, client_id="by hand", group_type=None, heartbeats=0),
        member(300, "m3", group_id=APPLICATION, client_id=_THREAD, assignor="stream"),
        member(300, "m4", group_id="tasks", group_type="streams", process_id=_PROCESS)
        | {"active_tasks": ["0_0", "0_1"], "standby_tasks": [], "assigned_partitions": None},
    ],
    "group_commits": [
        committed(5, 0, 10),
        committed(65, 0, 70),
        committed(125, 0, 60, went_back=True, failed_commits=1, error_code=22),
        committed(65, 1, 5, topic=None, topic_id="t9", is_transactional=True),
        committed(65, None, None, topic=None, topic_id=None, last_commit_time=None),
    ],
    "group_member_events": [
        happened(5, "m1", "joined", None, error_code=79),
        happened(6, "m1", "rejoined", 1),
        happened(6.001, "m1", "generation_started", 1, members=1),
        happened(6.5, "m1", "synced", 1),
        happened(30, "m2", "joined", None, error_code=79, client_id=HOSTILE),
        happened(31, "m2", "rejoined", 2, client_id=HOSTILE, reason=HOSTILE),
        happened(31.001, "m1", "rejoined", 2),
        happened(31.002, "m1", "generation_started", 2, members=2),
        happened(31.5, "m1", "synced", 2),
        happened(31.6, "m2", "synced", 2, client_id=HOSTILE),
        happened(50, "m2", "left", None, client_id=HOSTILE, api="LEAVE_GROUP"),
    ],
    "share_fetches": [
        shared(5, None),
        shared(5, 0),
        shared(65, 0, redelivered_records=20, max_delivery_count=3, released_records=10),
        shared(65, 1, topic=None, topic_id="t9", acknowledge_errors=2, error_code=121),
        shared(5, None, member_id="s2", client_id=HOSTILE, quota_bytes=200_000)
        | {"throttled_requests": 1, "throttle_time_ms": 9_658, "max_throttle_time_ms": 9_658},
        shared(5, 0, member_id="s2", client_id=HOSTILE, lock_timeouts=7),
        shared(5, None, member_id=None, client_id="no bodies", lock_timeout_ms=None),
    ],
}
"""Rows by table."""
