"""Offsets: what groups committed, and where the logs of partitions start and end."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafka.admin import OffsetSpec
from kafka.protocol.consumer import ListOffsetsRequest, OffsetFetchRequest

from quotaflow.pipelines.kafka import group_messages as messages
from quotaflow.pipelines.kafka.cluster_state import (
    ClusterAnswer,
    ClusterState,
    Partition,
    by_topic,
    error_name,
    in_chunks,
)

_GROUPS_PER_REQUEST = 100
_PARTITIONS_PER_REQUEST = 2_000
_NO_REPLICA = -1
_TOPIC_NAMES_VERSION = 8
"""The newest version of OffsetFetch that takes topic names, and no epoch of a member."""
_REMOTE_WAIT_MS = 30_000
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
"""Isolation levels of ListOffsets and FETCH."""


@dataclass(frozen=True, slots=True)
class _Which:
    """Which offset ListOffsets is asked for, and the first version that has it."""

    spec: OffsetSpec
    min_version: int
    isolation_level: int = READ_UNCOMMITTED


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """An offset of a group in a partition.

    A share group has a start offset, and `lag` where its coordinator says it (KIP-1226).
    """

    partition: Partition
    offset: int
    lag: int | None = None


def committed(
    state: ClusterState, broker_id: int, group_ids: Iterable[str]
) -> Iterator[ClusterAnswer]:
    """The committed offsets of each of these groups, as GroupOffset, from their coordinator.

    Partitions of topics that the login may not describe are silently missing.
    """
    of_group = OffsetFetchRequest.OffsetFetchRequestGroup

    def ask(chunk: list[str]) -> Iterator[ClusterAnswer]:
        request = OffsetFetchRequest(
            groups=[of_group(group_id=group_id, topics=None) for group_id in chunk],
            min_version=_TOPIC_NAMES_VERSION,
            max_version=_TOPIC_NAMES_VERSION,
        )
        for group in state.ask(request, broker_id).groups:
            offsets = [
                GroupOffset((topic.name, each.partition_index), each.committed_offset)
                for topic in group.topics
                for each in topic.partitions
                if not each.error_code and each.committed_offset >= 0
            ]
            yield ClusterAnswer(group.group_id, offsets, error_name(group.error_code))

    return in_chunks(group_ids, _GROUPS_PER_REQUEST, ask)


def share_offsets(
    state: ClusterState, broker_id: int, group_ids: Iterable[str]
) -> Iterator[ClusterAnswer]:
    """The start offsets of each of these share groups, as GroupOffset, from their coordinator."""
    of_group = messages.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup

    def ask(chunk: list[str]) -> Iterator[ClusterAnswer]:
        request = messages.DescribeShareGroupOffsetsRequest(
            groups=[of_group(group_id=group_id, topics=None) for group_id in chunk]
        )
        for group in state.ask(request, broker_id).groups:
            offsets = [
                GroupOffset((topic.topic_name, each.partition_index), each.start_offset, _lag(each))
                for topic in group.topics
                for each in topic.partitions
                if not each.error_code and each.start_offset >= 0
            ]
            yield ClusterAnswer(group.group_id, offsets, error_name(group.error_code))

    return in_chunks(group_ids, _GROUPS_PER_REQUEST, ask)


def _offsets(
    which: _Which, state: ClusterState, leader_id: int, partitions: Iterable[Partition]
) -> Iterator[ClusterAnswer]:
    """This offset of each partition, from its leader."""
    of_topic = ListOffsetsRequest.ListOffsetsTopic

    def ask(chunk: list[Partition]) -> Iterator[ClusterAnswer]:
        topics = [
            of_topic(
                name=name,
                partitions=[
                    of_topic.ListOffsetsPartition(partition_index=index, timestamp=int(which.spec))
                    for index in indexes
                ],
            )
            for name, indexes in by_topic(chunk)
        ]
        request = ListOffsetsRequest(
            replica_id=_NO_REPLICA,
            isolation_level=which.isolation_level,
            topics=topics,
            timeout_ms=_REMOTE_WAIT_MS,
            min_version=which.min_version,
        )
        for topic in state.ask(request, leader_id).topics:
            for each in topic.partitions:
                subject = (topic.name, each.partition_index)
                yield ClusterAnswer(subject, each.offset, error_name(each.error_code))

    return in_chunks(partitions, _PARTITIONS_PER_REQUEST, ask)


log_ends = partial(_offsets, _Which(OffsetSpec.LATEST, 1))
"""The high watermark: what consumers may read up to."""
last_stable = partial(_offsets, _Which(OffsetSpec.LATEST, 2, READ_COMMITTED))
"""The last stable offset (KIP-98): what consumers of committed records may read up to."""
log_starts = partial(_offsets, _Which(OffsetSpec.EARLIEST, 1))
"""The first offset, remote storage included."""
local_log_starts = partial(_offsets, _Which(OffsetSpec.EARLIEST_LOCAL, 8))
"""The first offset on the disk of the leader (KIP-405)."""
last_tiered = partial(_offsets, _Which(OffsetSpec.LATEST_TIERED, 9))
"""The last offset in remote storage (KIP-1005); -1 where there is none."""


def _lag(partition: Any) -> int | None:
    """The lag that a share coordinator says; version 0 has none, and -1 is not known."""
    lag = getattr(partition, "lag", None)
    return None if lag is None or lag < 0 else int(lag)
