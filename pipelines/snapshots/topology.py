"""`brokers`, `topics` and `replicas` of the cluster."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from quotaflow.pipelines.kafka import admin
from quotaflow.pipelines.kafka.cluster_state import (
    NO_BROKER,
    UNKNOWN_TOPIC,
    ClusterState,
    Partition,
    UnansweredError,
    error_name,
)
from quotaflow.pipelines.snapshots.observations import ObservedRows, Row, UnansweredPart, collect
from quotaflow.schemas.tables.declared import BROKERS, REPLICAS, TOPICS


@dataclass(frozen=True, slots=True)
class ObservedBrokers:
    """The registered brokers; `ids` are those that can be sent requests."""

    observed: ObservedRows
    ids: tuple[int, ...]
    unanswered: tuple[UnansweredPart, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """Topics, their replicas, and partitions by leader; those without a leader are under -1."""

    topics: ObservedRows
    replicas: ObservedRows
    names: tuple[str, ...]
    leaders: dict[int, list[Partition]]
    unanswered: tuple[UnansweredPart, ...]


def brokers(state: ClusterState) -> ObservedBrokers:
    """The brokers, and which of them is the active controller."""
    try:
        rows = state.brokers()
    except UnansweredError as error:
        gap = UnansweredPart(str(error))
        return ObservedBrokers(collect(BROKERS, [gap]), (), (gap,))
    fenced = [broker["broker_id"] for broker in rows if broker["is_fenced"]]
    return ObservedBrokers(
        collect(BROKERS, _with_controller(state, rows)),
        tuple(broker["broker_id"] for broker in rows if not broker["is_fenced"]),
        tuple(UnansweredPart(NO_BROKER, {"broker_id": broker_id}) for broker_id in fenced),
    )


def _with_controller(
    state: ClusterState, brokers: list[dict[str, Any]]
) -> Iterator[Row | UnansweredPart]:
    try:
        controller_id = state.controller_id()
    except UnansweredError as error:
        yield UnansweredPart(str(error), columns=("is_controller",))
        yield from brokers
        return
    for broker in brokers:
        yield broker | {"is_controller": broker["broker_id"] == controller_id}


@dataclass(frozen=True, slots=True)
class _Pages:
    """Reads pages of topics: yields their replicas, and joins a topic that spans pages."""

    topics: dict[str, dict[str, Any]] = field(default_factory=dict)
    leaders: dict[int, list[Partition]] = field(default_factory=partial(defaultdict, list))
    gaps: list[UnansweredPart] = field(default_factory=list)

    def read(self, state: ClusterState, current_names: set[str]) -> Iterator[Row | UnansweredPart]:
        """All topics, and each current topic that is missing by name, to see if it was deleted.

        A list of topics silently omits those that the login may no longer describe.
        """
        try:
            for page in state.topic_pages():
                yield from self._rows(page)
            missing = current_names - {topic["topic"] for topic in self.topics.values()}
            if missing:
                for page in state.topic_pages(missing):
                    yield from self._rows(page)
        except UnansweredError as error:
            self.gaps.append(UnansweredPart(str(error)))
        yield from self.gaps

    def _rows(self, page: list[Any]) -> Iterator[Row]:
        for topic in page:
            reason = error_name(topic.error_code)
            if reason is None:
                yield from self._replicas(topic)
            elif reason != UNKNOWN_TOPIC:
                self.gaps.append(UnansweredPart(reason, {"topic": topic.name}))

    def _replicas(self, topic: Any) -> Iterator[Row]:
        named = {"topic_id": admin.printed(topic.topic_id), "topic": topic.name}
        first = named | {"partition_count": 0, "is_internal": topic.is_internal}
        entry = self.topics.setdefault(named["topic_id"], first)
        entry["partition_count"] += len(topic.partitions)
        for partition in topic.partitions:
            self.leaders[partition.leader_id].append((topic.name, partition.partition_index))
            for position, broker_id in enumerate(partition.replica_nodes):
                yield named | {
                    "partition": partition.partition_index,
                    "broker_id": broker_id,
                    "is_preferred": position == 0,
                    "is_leader": broker_id == partition.leader_id,
                    "is_in_sync": broker_id in partition.isr_nodes,
                    "is_offline": broker_id in partition.offline_replicas,
                }


def topology(state: ClusterState, current_names: set[str]) -> Topology:
    """All topics; `current_names` are those of earlier snapshots."""
    pages = _Pages()
    replicas = collect(REPLICAS, pages.read(state, current_names))
    topics = collect(TOPICS, (*pages.topics.values(), *pages.gaps))
    names = tuple(topic["topic"] for topic in pages.topics.values())
    return Topology(topics, replicas, names, pages.leaders, tuple(pages.gaps))
