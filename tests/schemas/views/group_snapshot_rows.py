"""Rows of snapshots of groups."""

from typing import Any

from .view_rows import Row, at, counted

GROUP: Row = {"cluster_id": "c1", "group_id": "g", "group_type": "classic", "is_removed": False}
PARTITION: Row = {"topic": "t", "partition": 0}
TABLES = ("group_offsets", "partition_offsets")
"""The tables with offsets, which a snapshot counts."""


def group(second: float, **others: Any) -> Row:
    """A group with one member, as a snapshot saw it."""
    state = {"protocol_type": "consumer", "state": "Stable", "coordinator_id": 1, "members": 1}
    return GROUP | state | {"event_time": at(second), "assignor": "range"} | others


def committed(second: float, offset: int | None, **others: Any) -> Row:
    """The offset of the group in the partition."""
    return GROUP | PARTITION | {"event_time": at(second), "committed_offset": offset} | others


def ended(second: float, offset: int | None, **others: Any) -> Row:
    """The end of the partition."""
    row = {"cluster_id": "c1", "event_time": at(second), "log_end_offset": offset}
    return PARTITION | row | {"is_removed": False} | others


def fetched(minute: int, high_watermark: int, broker_id: int = 1) -> Row:
    """The end of the partition, by fetches of a minute."""
    row = {"cluster_id": "c1", "event_time": at(60 * minute), "broker_id": broker_id}
    return PARTITION | row | {"topic_id": "i", "max_high_watermark": high_watermark}


def assigned(
    member_id: str, *partitions: int, second: float = 0, topic: str = "t", **others: Any
) -> Row:
    """A member and its partitions."""
    named = [{"topic": topic, "partition": partition} for partition in partitions]
    member = {"member_id": member_id, "client_id": f"client-{member_id}"}
    row = {"event_time": at(second), "client_address": "10.0.0.1", "assigned_partitions": named}
    return GROUP | member | row | others


def snapshots(*seconds: float) -> list[Row]:
    """The times of snapshots, as these count themselves."""
    return [
        counted(second, n, "in", 1, job="snapshot", query_id="snapshot", target=table)
        for n, second in enumerate(seconds)
        for table in TABLES
    ]


def logged_commit(second: float, offset: int, **others: Any) -> Row:
    """A minute with a commit of the group, by a request log."""
    row = {"cluster_id": "c1", "group_id": "g", "event_time": at(second // 60 * 60)}
    row |= {"last_commit_time": at(second), "last_offset": offset, "commits": 1}
    return PARTITION | row | others
