"""Rows of groups for tables of views: two members with a rebalance, and a Streams application."""

from typing import Any

from .view_rows import CLIENT, HOSTILE, Row, at

APPLICATION = "shop"
_PROCESS = "7b8cc72f-7672-4912-802f-fdcca75ef68c"
_THREAD = f"{APPLICATION}-{_PROCESS}-StreamThread-1-consumer"
_CLIENT = {name: CLIENT[name] for name in ("cluster_id", "principal", "client_id")}


def member(second: float, member_id: str | None, **others: Any) -> Row:
    """A minute of a member of a classic group, with its last request at this second."""
    minute = at(second // 60 * 60)
    row = {"event_time": minute, "event_date": minute.date(), **_CLIENT, "group_id": HOSTILE}
    row |= {"member_id": member_id, "group_type": "classic", "client_address": "10.0.0.7"}
    row |= {"client_software_name": "librdkafka", "client_software_version": "2.10.0"}
    row |= {"coordinator_id": 1, "joins": 0, "syncs": 0, "heartbeats": 20, "leaves": 0}
    row |= {"commits": 6, "errors": 1, "rebalancing_answers": 1, "fenced_answers": 0}
    row |= {"throttle_time_ms": 0, "group_epoch": 3, "assignor": "range"}
    row |= {"subscribed_topics": ["orders"], "unreadable_protocols": 0}
    row |= {"assigned_partitions": [{"topic": "orders", "topic_id": None, "partition": 0}]}
    return row | {"last_request_time": at(second)} | others


def committed(second: float, partition: int | None, offset: int | None, **others: Any) -> Row:
    """A minute of commits of a group."""
    minute = at(second // 60 * 60)
    row = {"event_time": minute, "event_date": minute.date(), **_CLIENT, "group_id": HOSTILE}
    row |= {"topic": "orders", "topic_id": "t1", "partition": partition, "commits": 4}
    row |= {"failed_commits": 0, "first_offset": offset, "last_offset": offset}
    row |= {"max_offset": offset, "last_commit_time": at(second), "member_id": "m1"}
    return row | {"is_transactional": False, "went_back": False} | others


def happened(second: float, member_id: str, event: str, epoch: int | None, **others: Any) -> Row:
    """An event of a member of a classic group."""
    row = {"event_time": at(second), "event_date": at(second).date(), **_CLIENT}
    row |= {"group_id": HOSTILE, "group_type": "classic", "member_id": member_id, "event": event}
    row |= {"group_epoch": epoch, "error_code": 0, "received_time": at(second), "requests": 1}
    row |= {"assignor": "range", "coordinator_id": 1, "api": "JOIN_GROUP", "position": 1}
    row |= {"source_topic": "log", "source_partition": 0, "source_offset": int(second * 1_000)}
    return row | others


def shared(second: float, partition: int | None, **others: Any) -> Row:
    """A minute of share_fetches: of a partition, or of whole requests."""
    minute = at(second // 60 * 60)
    row = {"event_time": minute, "event_date": minute.date(), **_CLIENT, "group_id": HOSTILE}
    row |= {"member_id": "s1", "partition": partition, "broker_id": 1}
    row |= dict.fromkeys(_SHARE_COUNTS, 0)
    if partition is None:
        whole = {"fetches": 9, "max_throttle_time_ms": 0, "max_bytes": 52_428_800}
        return row | whole | {"lock_timeout_ms": 30_000} | others
    row |= {"topic": "orders", "topic_id": "t1", "acquired_records": 80, "acquired_ranges": 4}
    return row | {"max_delivery_count": 1, "accepted_records": 80} | others


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
