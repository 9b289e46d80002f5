"""`groups`, `group_assignments` and `group_offsets`, from the coordinator of each group."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from quotaflow.pipelines.kafka import group_state, offsets
from quotaflow.pipelines.kafka.cluster_state import (
    ClusterAnswer,
    ClusterState,
    Partition,
    UnansweredError,
)
from quotaflow.pipelines.kafka.group_state import Description, ListedGroup
from quotaflow.pipelines.snapshots.observations import Row, UnansweredPart
from quotaflow.pipelines.snapshots.topology import ObservedBrokers
from quotaflow.udfs.rules.pseudonym import ADDRESS, CLIENT_ID, Pseudonyms

_GONE = "GROUP_ID_NOT_FOUND"
"""The error of a group that was removed after it was listed."""


@dataclass(frozen=True, slots=True)
class ObservedGroups:
    """The groups that brokers listed, each with its description if there is one."""

    listed: tuple[ListedGroup, ...]
    descriptions: dict[str, Description]
    unanswered: tuple[UnansweredPart, ...]

    def rows(self) -> Iterator[Row | UnansweredPart]:
        """Rows of `groups`."""
        yield from self.unanswered
        for group in self.listed:
            described = self.descriptions.get(group.group_id)
            if described is not None:
                yield {
                    "group_id": group.group_id,
                    "group_type": group.group_type,
                    "protocol_type": group.protocol_type,
                    "state": described.state or group.state,
                    "coordinator_id": group.coordinator_id,
                    "assignor": described.assignor,
                    "group_epoch": described.group_epoch,
                    "members": len(described.members),
                }

    def members(self, pseudonyms: Pseudonyms | None) -> Iterator[Row | UnansweredPart]:
        """Rows of `group_assignments`, with clients hidden where there are pseudonyms."""
        yield from self.unanswered
        for group_id, described in self.descriptions.items():
            for member in described.members:
                partitions = member.partitions
                row = {
                    "group_id": group_id,
                    "member_id": member.member_id,
                    "group_instance_id": member.group_instance_id,
                    "client_id": member.client_id,
                    # Kafka prints an address of Java, with a slash before it.
                    "client_address": member.client_host.removeprefix("/"),
                    "rack_id": member.rack_id or None,
                    "member_epoch": member.member_epoch,
                    "assigned_partitions": partitions
                    if partitions is None
                    else [{"topic": topic, "partition": index} for topic, index in partitions],
                }
                yield row if pseudonyms is None else _hidden(row, pseudonyms)


def observe(state: ClusterState, brokers: ObservedBrokers) -> ObservedGroups:
    """All groups that the login may describe.

    A broker that lists no groups may be the coordinator of any, so then no group counts as removed.
    """
    gaps = [UnansweredPart(gap.reason) for gap in brokers.unanswered if not gap.identity]
    listed: list[ListedGroup] = []
    for broker_id in brokers.ids:
        try:
            listed += group_state.groups(state, broker_id)
        except UnansweredError as error:
            gaps.append(UnansweredPart(str(error)))
    descriptions: dict[str, Description] = {}
    for (broker_id, group_type), ids in _by_coordinator(listed, _type).items():
        for answer in group_state.described(state, broker_id, group_type, ids):
            if answer.reason is None:
                descriptions[answer.subject] = answer.content
            elif answer.reason != _GONE:
                gaps.append(UnansweredPart(answer.reason, {"group_id": answer.subject}))
    return ObservedGroups(tuple(listed), descriptions, tuple(gaps))


def group_offsets(state: ClusterState, observed: ObservedGroups) -> list[Row | UnansweredPart]:
    """Rows of `group_offsets`."""
    rows: list[Row | UnansweredPart] = list(observed.unanswered)
    types = {group.group_id: group.group_type for group in observed.listed}
    for (broker_id, is_share), ids in _by_coordinator(observed.listed, _is_share).items():
        ask = offsets.share_offsets if is_share else offsets.committed
        for answer in ask(state, broker_id, ids):
            rows += _offset_rows(answer, types[answer.subject])
    return rows


def partitions_of(rows: Iterable[Row | UnansweredPart]) -> set[Partition]:
    """The partitions that rows of `group_offsets` name."""
    return {(row["topic"], row["partition"]) for row in rows if not isinstance(row, UnansweredPart)}


def _offset_rows(answer: ClusterAnswer, group_type: str) -> Iterator[Row | UnansweredPart]:
    if answer.reason is not None:
        if answer.reason != _GONE:
            yield UnansweredPart(answer.reason, {"group_id": answer.subject})
        return
    is_share = group_type == group_state.SHARE
    for offset in answer.content:
        topic, partition = offset.partition
        yield {
            "group_id": answer.subject,
            "group_type": group_type,
            "topic": topic,
            "partition": partition,
            "committed_offset": None if is_share else offset.offset,
            "start_offset": offset.offset if is_share else None,
            "reported_lag": offset.lag,
        }


def _type(group: ListedGroup) -> str:
    return group.group_type


def _is_share(group: ListedGroup) -> bool:
    return group.group_type == group_state.SHARE


def _by_coordinator(
    listed: Iterable[ListedGroup], kind: Callable[[ListedGroup], Any]
) -> dict[tuple[int, Any], list[str]]:
    ids: dict[tuple[int, Any], list[str]] = defaultdict(list)
    for group in listed:
        ids[group.coordinator_id, kind(group)].append(group.group_id)
    return ids


def _hidden(row: dict[str, Any], pseudonyms: Pseudonyms) -> Row:
    return row | {
        "member_id": pseudonyms.member_id(row["member_id"]),
        "client_id": pseudonyms.pseudonym(CLIENT_ID, row["client_id"]),
        "client_address": pseudonyms.pseudonym(ADDRESS, row["client_address"]),
    }
