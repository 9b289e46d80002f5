"""Offsets: what groups committed, and where the logs of partitions start and end."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
_LOCAL_START_VERSION, _TIERED_VERSION = 8, 9
_REMOTE_WAIT_MS = 30_000


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


def log_ends(
    state: ClusterState, leader_id: int, partitions: Iterable[Partition]
) -> Iterator[ClusterAnswer]:
    """The high watermark of each partition, from its leader: what consumers may read up to."""
    return _offsets(state, leader_id, partitions, OffsetSpec.LATEST, 1)


def log_starts(
    state: ClusterState, leader_id: int, partitions: Iterable[Partition]
) -> Iterator[ClusterAnswer]:
    """The first offset of each partition, remote storage included."""
    return _offsets(state, leader_id, partitions, OffsetSpec.EARLIEST, 1)


def local_log_starts(
    state: ClusterState, leader_id: int, partitions: Iterable[Partition]
) -> Iterator[ClusterAnswer]:
    """The first offset of each partition on the disk of its leader (KIP-405)."""
    return _offsets(state, leader_id, partitions, OffsetSpec.EARLIEST_LOCAL, _LOCAL_START_VERSION)


def last_tiered(
    state: ClusterState, leader_id: int, partitions: Iterable[Partition]
) -> Iterator[ClusterAnswer]:
    """The last offset of each partition in remote storage (KIP-1005); -1 where it has none."""
    return _offsets(state, leader_id, partitions, OffsetSpec.LATEST_TIERED, _TIERED_VERSION)


def _offsets(
    state: ClusterState,
    leader_id: int,
    partitions: Iterable[Partition],
    which: OffsetSpec,
    min_version: int,
) -> Iterator[ClusterAnswer]:
    of_topic = ListOffsetsRequest.ListOffsetsTopic

    def ask(chunk: list[Partition]) -> Iterator[ClusterAnswer]:
        topics = [
            of_topic(
                name=name,
                partitions=[
                    of_topic.ListOffsetsPartition(partition_index=index, timestamp=int(which))
                    for index in indexes
                ],
            )
            for name, indexes in by_topic(chunk)
        ]
        request = ListOffsetsRequest(
            replica_id=_NO_REPLICA,
            isolation_level=0,
            topics=topics,
            timeout_ms=_REMOTE_WAIT_MS,
            min_version=min_version,
        )
        for topic in state.ask(request, leader_id).topics:
            for each in topic.partitions:
                subject = (topic.name, each.partition_index)
                yield ClusterAnswer(subject, each.offset, error_name(each.error_code))

    return in_chunks(partitions, _PARTITIONS_PER_REQUEST, ask)


def _lag(partition: Any) -> int | None:
    """The lag that a share coordinator says; version 0 has none, and -1 is not known."""
    lag = getattr(partition, "lag", None)
    return None if lag is None or lag < 0 else int(lag)
