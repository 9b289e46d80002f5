"""`groups`: all groups of the cluster, from the coordinator of each."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from quotaflow.pipelines.kafka import group_state
from quotaflow.pipelines.kafka.cluster_state import (
    ClusterState,
    UnansweredError,
)
from quotaflow.pipelines.kafka.group_state import Description, ListedGroup
from quotaflow.pipelines.snapshots.observations import Row, UnansweredPart
from quotaflow.pipelines.snapshots.topology import ObservedBrokers

GROUP_REMOVED = "GROUP_ID_NOT_FOUND"
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
    for (broker_id, group_type), ids in by_coordinator(listed, _type).items():
        for answer in group_state.described(state, broker_id, group_type, ids):
            if answer.reason is None:
                descriptions[answer.subject] = answer.content
            elif answer.reason != GROUP_REMOVED:
                gaps.append(UnansweredPart(answer.reason, {"group_id": answer.subject}))
    return ObservedGroups(tuple(listed), descriptions, tuple(gaps))


def _type(group: ListedGroup) -> str:
    return group.group_type


def by_coordinator(
    listed: Iterable[ListedGroup], kind: Callable[[ListedGroup], Any]
) -> dict[tuple[int, Any], list[str]]:
    """Ids of the groups of each coordinator and kind."""
    ids: dict[tuple[int, Any], list[str]] = defaultdict(list)
    for group in listed:
        ids[group.coordinator_id, kind(group)].append(group.group_id)
    return ids
