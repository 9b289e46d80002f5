"""Groups of a cluster and their members.

A group is of one of four types (KIP-848, KIP-932, KIP-1071), and each has its own request for
members. Only the coordinator of a group answers about it, so a broker is asked for its own groups.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka.protocol import admin as requests
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from quotaflow.pipelines.kafka import group_messages as messages
from quotaflow.pipelines.kafka.cluster_state import (
    ClusterAnswer,
    ClusterState,
    Partition,
    error_name,
    in_chunks,
)

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
"""Types of groups, as Kafka's GroupType has them."""

_CONSUMER_PROTOCOL = "consumer"
"""The protocol type of classic groups whose members are consumers."""
_GROUPS_PER_REQUEST = 100
_STABLE_SHARE_DESCRIBE = 1


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group in the list of its coordinator; `state` is None before Kafka 2.6."""

    group_id: str
    group_type: str
    protocol_type: str
    state: str | None
    coordinator_id: int


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group; `partitions` is None where its assignment cannot be read."""

    member_id: str
    client_id: str
    client_host: str
    group_instance_id: str | None
    rack_id: str | None
    member_epoch: int | None
    partitions: tuple[Partition, ...] | None


@dataclass(frozen=True, slots=True)
class Description:
    """Members of a group. `group_epoch` is None for the classic protocol, which does not say it."""

    state: str
    assignor: str | None
    group_epoch: int | None
    members: tuple[Member, ...]


def groups(state: ClusterState, broker_id: int) -> list[ListedGroup]:
    """The groups that a broker coordinates, as far as the login may describe them.

    Before Kafka 3.8 the list has no types: every group is a classic one. Raises UnansweredError.
    """
    listed = state.ask(requests.ListGroupsRequest(states_filter=[], types_filter=[]), broker_id)
    return [
        ListedGroup(
            group_id=group.group_id,
            group_type=(getattr(group, "group_type", None) or CLASSIC).lower(),
            protocol_type=group.protocol_type,
            state=getattr(group, "group_state", None) or None,
            coordinator_id=broker_id,
        )
        for group in listed.groups
    ]


def described(
    state: ClusterState, broker_id: int, group_type: str, group_ids: Iterable[str]
) -> Iterator[ClusterAnswer]:
    """A Description of each of these groups of one type, from their coordinator."""
    request, described = _DESCRIBED[group_type]

    def ask(chunk: list[str]) -> Iterator[ClusterAnswer]:
        for group in state.ask(request(chunk), broker_id).groups:
            reason = error_name(group.error_code)
            yield ClusterAnswer(group.group_id, None if reason else described(group), reason)

    return in_chunks(group_ids, _GROUPS_PER_REQUEST, ask)


def _classic(group: Any) -> Description:
    members = tuple(
        Member(
            member_id=member.member_id,
            client_id=member.client_id,
            client_host=member.client_host,
            group_instance_id=member.group_instance_id,
            rack_id=None,
            member_epoch=None,
            partitions=_assigned(group.protocol_type, member.member_assignment),
        )
        for member in group.members
    )
    return Description(group.group_state, group.protocol_data or None, None, members)


def _assigned(protocol_type: str, assignment: bytes | None) -> tuple[Partition, ...] | None:
    """Partitions of an assignment that a group's leader made: any bytes, of any protocol."""
    if protocol_type != _CONSUMER_PROTOCOL or not assignment:
        return None
    try:
        read = ConsumerProtocolAssignment.decode(bytes(assignment))
    except (struct.error, ValueError):
        return None
    return _sorted((each.topic, each.partitions) for each in read.assigned_partitions)


def _consumer(group: Any) -> Description:
    return _with_epochs(group, lambda member: _named(member.assignment))


def _streams(group: Any) -> Description:
    topology = group.topology.subtopologies if group.topology else None
    sources = {
        part.subtopology_id: [
            *part.source_topics,
            *(topic.name for topic in part.repartition_source_topics),
        ]
        for part in topology or ()
    }
    return _with_epochs(group, lambda member: _of_tasks(member.assignment, sources))


def _with_epochs(
    group: Any, partitions: Callable[[Any], tuple[Partition, ...] | None]
) -> Description:
    members = tuple(
        Member(
            member_id=member.member_id,
            client_id=member.client_id,
            client_host=member.client_host,
            group_instance_id=getattr(member, "instance_id", None),
            rack_id=member.rack_id,
            member_epoch=member.member_epoch,
            partitions=partitions(member),
        )
        for member in group.members
    )
    assignor = getattr(group, "assignor_name", None) or None
    return Description(group.group_state, assignor, group.group_epoch, members)


def _named(assignment: Any) -> tuple[Partition, ...]:
    return _sorted((each.topic_name, each.partitions) for each in assignment.topic_partitions)


def _of_tasks(
    assignment: Any, sources: Mapping[str, Sequence[str]]
) -> tuple[Partition, ...] | None:
    """Partitions of the active tasks; a task reads its partition of each source topic."""
    if any(task.subtopology_id not in sources for task in assignment.active_tasks):
        return None
    return _sorted(
        (topic, task.partitions)
        for task in assignment.active_tasks
        for topic in sources[task.subtopology_id]
    )


def _sorted(assigned: Iterable[tuple[str, Iterable[int]]]) -> tuple[Partition, ...]:
    return tuple(sorted({(topic, index) for topic, indexes in assigned for index in indexes}))


_DESCRIBED: Mapping[str, tuple[Callable[[list[str]], Any], Callable[[Any], Description]]] = {
    CLASSIC: (
        lambda ids: requests.DescribeGroupsRequest(groups=ids, include_authorized_operations=False),
        _classic,
    ),
    CONSUMER: (
        lambda ids: messages.ConsumerGroupDescribeRequest(
            group_ids=ids, include_authorized_operations=False
        ),
        _consumer,
    ),
    SHARE: (
        lambda ids: messages.ShareGroupDescribeRequest(
            group_ids=ids,
            include_authorized_operations=False,
            min_version=_STABLE_SHARE_DESCRIBE,
        ),
        _consumer,
    ),
    STREAMS: (
        lambda ids: messages.StreamsGroupDescribeRequest(
            group_ids=ids, include_authorized_operations=False
        ),
        _streams,
    ),
}
