"""Groups of a made cluster: their answers have passed through Kafka's own encoding of messages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol import admin
from kafka.protocol.consumer import ListOffsetsResponse, OffsetFetchResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from quotaflow.pipelines.kafka import group_messages as messages

Assigned = Mapping[str, list[int]]
Partition = tuple[str, int]


@dataclass(frozen=True)
class MadeMember:
    """A member; `assigned` are its partitions by topic, for a streams group by subtopology."""

    member_id: str
    assigned: Assigned = field(default_factory=dict)
    client_id: str = "app"
    host: str = "/10.0.0.1"
    rack_id: str | None = None
    assignment_bytes: bytes | None = None


@dataclass(frozen=True)
class MadeGroup:
    """A group. `lags` are those that the coordinator of a share group says."""

    group_type: str = "classic"
    members: tuple[MadeMember, ...] = ()
    offsets: Mapping[Partition, int] = field(default_factory=dict)
    lags: Mapping[Partition, int] = field(default_factory=dict)
    sources: Mapping[str, list[str]] = field(default_factory=dict)
    coordinator: int = 1
    protocol_type: str = "consumer"

    @property
    def state(self) -> str:
        return "Stable" if self.members else "Empty"


def listed(groups: Mapping[str, MadeGroup], broker_id: int, code: int) -> Any:
    kind = admin.ListGroupsResponse
    rows = [
        kind.ListedGroup(
            group_id=group_id,
            protocol_type=group.protocol_type,
            group_state=group.state,
            group_type=group.group_type.capitalize(),
        )
        for group_id, group in groups.items()
        if group.coordinator == broker_id
    ]
    return _sent(kind(throttle_time_ms=0, error_code=code, groups=[] if code else rows), 5)


def classic(group_id: str, group: MadeGroup, code: int) -> Any:
    kind = admin.DescribeGroupsResponse.DescribedGroup
    members = [
        kind.DescribedGroupMember(
            member_id=member.member_id,
            group_instance_id=None,
            client_id=member.client_id,
            client_host=member.host,
            member_metadata=b"",
            member_assignment=_assignment(member),
        )
        for member in group.members
    ]
    return kind(
        error_code=code,
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data="range" if group.members else "",
        members=members,
    )


def with_epochs(kind: Any, group_id: str, group: MadeGroup, code: int) -> Any:
    """A group of the consumer protocol, or a share group."""
    of_topic = kind.Member.Assignment.TopicPartitions
    members = []
    for member in group.members:
        topics = [of_topic(topic_name=t, partitions=p) for t, p in member.assigned.items()]
        own = kind.Member.Assignment(topic_partitions=topics)
        target = {} if group.group_type == "share" else {"target_assignment": own}
        members.append(
            kind.Member(**_identity(member), subscribed_topic_names=[], assignment=own, **target)
        )
    return kind(**_head(group_id, group, code), assignor_name="uniform", members=members)


def streams(group_id: str, group: MadeGroup, code: int) -> Any:
    kind = messages.StreamsGroupDescribeResponse.DescribedGroup
    part = kind.Topology.Subtopology
    assignment = kind.Member.Assignment
    members = []
    for member in group.members:
        tasks = [
            assignment.TaskIds(subtopology_id=s, partitions=p) for s, p in member.assigned.items()
        ]
        own = assignment(active_tasks=tasks, standby_tasks=[], warmup_tasks=[])
        members.append(
            kind.Member(
                **_identity(member),
                topology_epoch=0,
                process_id="p",
                client_tags=[],
                task_offsets=[],
                task_end_offsets=[],
                assignment=own,
                target_assignment=own,
                is_classic=False,
            )
        )
    parts = [
        part(
            subtopology_id=name,
            source_topics=topics,
            repartition_sink_topics=[],
            state_changelog_topics=[],
            repartition_source_topics=[],
        )
        for name, topics in group.sources.items()
    ]
    topology = kind.Topology(epoch=0, subtopologies=parts)
    return kind(**_head(group_id, group, code), topology=topology, members=members)


def described(response: Any, groups: list[Any], version: int) -> Any:
    return _sent(response(throttle_time_ms=0, groups=groups), version)


def committed(groups: Mapping[str, MadeGroup], ids: list[str], codes: Mapping[str, int]) -> Any:
    kind = OffsetFetchResponse.OffsetFetchResponseGroup
    of_topic = kind.OffsetFetchResponseTopics
    answers = []
    for group_id in ids:
        topics = [
            of_topic(
                name=topic,
                partitions=[
                    of_topic.OffsetFetchResponsePartitions(
                        partition_index=index, committed_offset=offset, metadata="", error_code=0
                    )
                ],
            )
            for (topic, index), offset in groups[group_id].offsets.items()
        ]
        code = codes.get(group_id, 0)
        answers.append(kind(group_id=group_id, topics=[] if code else topics, error_code=code))
    return _sent(OffsetFetchResponse(throttle_time_ms=0, groups=answers), 8)


def share_offsets(groups: Mapping[str, MadeGroup], ids: list[str], version: int) -> Any:
    response = messages.DescribeShareGroupOffsetsResponse
    kind = response.DescribeShareGroupOffsetsResponseGroup
    of_topic = kind.DescribeShareGroupOffsetsResponseTopic
    answers = []
    for group_id in ids:
        group = groups[group_id]
        topics = [
            of_topic(
                topic_name=topic,
                partitions=[
                    of_topic.DescribeShareGroupOffsetsResponsePartition(
                        partition_index=index,
                        start_offset=offset,
                        leader_epoch=0,
                        lag=group.lags.get((topic, index), -1),
                        error_code=0,
                    )
                ],
            )
            for (topic, index), offset in group.offsets.items()
        ]
        answers.append(kind(group_id=group_id, topics=topics, error_code=0))
    return _sent(response(throttle_time_ms=0, groups=answers), version)


def list_offsets(request: Any, offset: Any) -> Any:
    """The answer to ListOffsets: `offset` of (partition, timestamp) is an offset or an error."""
    kind = ListOffsetsResponse.ListOffsetsTopicResponse
    topics = []
    for topic in request.topics:
        partitions = []
        for each in topic.partitions:
            value, code = offset((topic.name, each.partition_index), each.timestamp)
            partitions.append(
                kind.ListOffsetsPartitionResponse(
                    partition_index=each.partition_index, error_code=code, offset=value
                )
            )
        topics.append(kind(name=topic.name, partitions=partitions))
    return _sent(ListOffsetsResponse(throttle_time_ms=0, topics=topics), 9)


def _head(group_id: str, group: MadeGroup, code: int) -> dict[str, Any]:
    return {
        "error_code": code,
        "group_id": group_id,
        "group_state": group.state,
        "group_epoch": 7,
        "assignment_epoch": 7,
    }


def _identity(member: MadeMember) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "rack_id": member.rack_id,
        "member_epoch": 5,
        "client_id": member.client_id,
        "client_host": member.host,
    }


def _assignment(member: MadeMember) -> bytes:
    if member.assignment_bytes is not None:
        return member.assignment_bytes
    kind = ConsumerProtocolAssignment.TopicPartition
    topics = [kind(topic=topic, partitions=p) for topic, p in member.assigned.items()]
    made = ConsumerProtocolAssignment(3, assigned_partitions=topics, user_data=b"")
    return bytes(made.encode())


def _sent(response: Any, version: int) -> Any:
    return type(response).decode(response.encode(version=version), version=version)
