"""Groups of a made cluster: their answers have passed through Kafka's own encoding of messages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol import admin
from kafka.protocol.consumer import ListOffsetsResponse, OffsetFetchResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from quotaflow.pipelines.kafka import group_messages as messages

from ...rows import Row
from .plain_messages import message, sent

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
    rows = [
        {
            "group_id": group_id,
            "protocol_type": group.protocol_type,
            "group_state": group.state,
            "group_type": group.group_type.capitalize(),
        }
        for group_id, group in groups.items()
        if group.coordinator == broker_id
    ]
    return sent(admin.ListGroupsResponse, 5, error_code=code, groups=[] if code else rows)


def classic(group_id: str, group: MadeGroup, code: int) -> Row:
    members = [
        {
            "member_id": member.member_id,
            "client_id": member.client_id,
            "client_host": member.host,
            "member_assignment": _assignment(member),
        }
        for member in group.members
    ]
    return {
        "error_code": code,
        "group_id": group_id,
        "group_state": group.state,
        "protocol_type": group.protocol_type,
        "protocol_data": "range" if group.members else "",
        "members": members,
    }


def with_epochs(group_id: str, group: MadeGroup, code: int) -> Row:
    """A group of the consumer protocol, or a share group."""
    members = []
    for member in group.members:
        topics = [{"topic_name": t, "partitions": p} for t, p in member.assigned.items()]
        own = {"topic_partitions": topics}
        target = {} if group.group_type == "share" else {"target_assignment": own}
        members.append(_identity(member) | {"assignment": own} | target)
    return _head(group_id, group, code) | {"assignor_name": "uniform", "members": members}


def streams(group_id: str, group: MadeGroup, code: int) -> Row:
    members = []
    for member in group.members:
        tasks = [{"subtopology_id": s, "partitions": p} for s, p in member.assigned.items()]
        own = {"active_tasks": tasks}
        members.append(
            _identity(member) | {"process_id": "p", "assignment": own, "target_assignment": own}
        )
    parts = [{"subtopology_id": n, "source_topics": topics} for n, topics in group.sources.items()]
    topology = {"epoch": 0, "subtopologies": parts}
    return _head(group_id, group, code) | {"topology": topology, "members": members}


def committed(groups: Mapping[str, MadeGroup], ids: list[str], codes: Mapping[str, int]) -> Any:
    answers = []
    for group_id in ids:
        code = codes.get(group_id, 0)
        topics = [
            {
                "name": topic,
                "partitions": [
                    {"partition_index": index, "committed_offset": offset, "metadata": ""}
                ],
            }
            for (topic, index), offset in groups[group_id].offsets.items()
        ]
        answers.append({"group_id": group_id, "topics": [] if code else topics, "error_code": code})
    return sent(OffsetFetchResponse, 8, groups=answers)


def share_offsets(groups: Mapping[str, MadeGroup], ids: list[str], version: int) -> Any:
    answers = []
    for group_id in ids:
        group = groups[group_id]
        topics = []
        for (topic, index), offset in group.offsets.items():
            lag = group.lags.get((topic, index), -1)
            partition = {"partition_index": index, "start_offset": offset, "lag": lag}
            topics.append({"topic_name": topic, "partitions": [partition]})
        answers.append({"group_id": group_id, "topics": topics})
    return sent(messages.DescribeShareGroupOffsetsResponse, version, groups=answers)


def list_offsets(request: Any, offset: Any) -> Any:
    """The answer to ListOffsets: `offset` of (partition, timestamp) is an offset or an error."""
    topics = []
    for topic in request.topics:
        partitions = []
        for each in topic.partitions:
            value, code = offset((topic.name, each.partition_index), each.timestamp)
            partitions.append(
                {"partition_index": each.partition_index, "error_code": code, "offset": value}
            )
        topics.append({"name": topic.name, "partitions": partitions})
    return sent(ListOffsetsResponse, 9, topics=topics)


def _head(group_id: str, group: MadeGroup, code: int) -> Row:
    return {
        "error_code": code,
        "group_id": group_id,
        "group_state": group.state,
        "group_epoch": 7,
        "assignment_epoch": 7,
    }


def _identity(member: MadeMember) -> Row:
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
    topics = [{"topic": topic, "partitions": p} for topic, p in member.assigned.items()]
    made = message(ConsumerProtocolAssignment, version=3, assigned_partitions=topics, user_data=b"")
    return bytes(made.encode())
