"""`group_offsets`: what groups committed, and where share groups start (KIP-932)."""

from collections.abc import Iterable, Iterator

from quotaflow.pipelines.kafka import group_state, offsets
from quotaflow.pipelines.kafka.cluster_state import ClusterAnswer, ClusterState, Partition
from quotaflow.pipelines.kafka.group_state import ListedGroup
from quotaflow.pipelines.snapshots.groups import GROUP_REMOVED, ObservedGroups, by_coordinator
from quotaflow.pipelines.snapshots.observations import Row, UnansweredPart


def observe(state: ClusterState, observed: ObservedGroups) -> list[Row | UnansweredPart]:
    """The offset of every group in every partition that it has one in."""
    rows: list[Row | UnansweredPart] = list(observed.unanswered)
    types = {group.group_id: group.group_type for group in observed.listed}
    for (broker_id, is_share), ids in by_coordinator(observed.listed, _is_share).items():
        ask = offsets.share_offsets if is_share else offsets.committed
        for answer in ask(state, broker_id, ids):
            rows += _offset_rows(answer, types[answer.subject])
    return rows


def partitions_of(rows: Iterable[Row | UnansweredPart]) -> set[Partition]:
    """The partitions that rows of `group_offsets` name."""
    return {(row["topic"], row["partition"]) for row in rows if not isinstance(row, UnansweredPart)}


def _offset_rows(answer: ClusterAnswer, group_type: str) -> Iterator[Row | UnansweredPart]:
    if answer.reason is not None:
        if answer.reason != GROUP_REMOVED:
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


def _is_share(group: ListedGroup) -> bool:
    return group.group_type == group_state.SHARE
