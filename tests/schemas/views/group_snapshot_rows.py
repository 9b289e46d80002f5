"""Rows of snapshots of groups."""

from typing import Any

from ...rows import Row, at, counted, minute_of, row

PARTITION: Row = {"topic": "t", "partition": 0}
TABLES = ("group_offsets", "partition_offsets", "group_assignments")
"""Tables that a snapshot counts."""


def group(second: float, **others: Any) -> Row:
    """A group with one member, as a snapshot saw it."""
    state = {"protocol_type": "consumer", "state": "Stable", "coordinator_id": 1, "members": 1}
    given = state | {"group_type": "classic", "assignor": "range"} | others
    return row("groups", second, given, group_id="g")


def committed(second: float, offset: int | None, **others: Any) -> Row:
    """The offset of the group in the partition."""
    given = PARTITION | {"group_type": "classic"} | others
    return row("group_offsets", second, given, group_id="g", committed_offset=offset)


def ended(second: float, offset: int | None, **others: Any) -> Row:
    """The end of the partition."""
    return row("partition_offsets", second, PARTITION | others, log_end_offset=offset)


def fetched(minute: int, high_watermark: int, broker_id: int = 1) -> Row:
    """The end of the partition, by fetches of a minute."""
    given = PARTITION | {"topic_id": "i", "broker_id": broker_id}
    return row("replica_offsets", 60 * minute, given, max_high_watermark=high_watermark)


def assigned(
    member_id: str, *partitions: int, second: float = 0, topic: str = "t", **others: Any
) -> Row:
    """A member and its partitions."""
    named = [{"topic": topic, "partition": partition} for partition in partitions]
    member = {"group_id": "g", "member_id": member_id, "client_id": f"client-{member_id}"}
    given = member | {"client_address": "10.0.0.1", "assigned_partitions": named} | others
    return row("group_assignments", second, given)


def snapshots(*seconds: float, offsets_after_s: float = 0) -> list[Row]:
    """The times of snapshots, as these count themselves; offsets have a later one."""
    later = {table: offsets_after_s for table in TABLES if table.endswith("_offsets")}
    return [
        counted(
            second + later.get(table, 0),
            n,
            "in",
            1,
            job="snapshot",
            query_id="snapshot",
            target=table,
        )
        for n, second in enumerate(seconds)
        for table in TABLES
    ]


def logged_commit(second: float, offset: int, **others: Any) -> Row:
    """A minute with a commit of the group, by a request log."""
    commit = {"group_id": "g", "last_commit_time": at(second), "last_offset": offset, "commits": 1}
    given = PARTITION | dict.fromkeys(("topic_id", "principal", "client_id")) | commit | others
    return row("group_commits", minute_of(second), given)


def producer(second: float = 0, *, start: int | None = None, **others: Any) -> Row:
    """A transactional producer of the partition; start: where its open transaction begins."""
    given = PARTITION | {"broker_id": 1, "producer_id": 9, "coordinator_epoch": 0} | others
    return row("active_producers", second, given, current_transaction_start_offset=start)


def sized(second: float = 0, **others: Any) -> Row:
    """A minute of fetches of the client that commits."""
    given = {"broker_id": 1, "replica_id": None} | others
    return row("fetch_sizes", second, given, principal=None, client_id=None)
