"""What a snapshot reads of a cluster for each table that it fills; shared answers are read once."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain

from quotaflow.pipelines.kafka.cluster_state import ClusterState, Partition
from quotaflow.pipelines.snapshots import (
    client_quotas,
    configs,
    group_assignments,
    group_offsets,
    groups,
    moving_replicas,
    partition_offsets,
    producers,
    replica_sizes,
    settings,
    topology,
)
from quotaflow.pipelines.snapshots.observations import ObservedRows, Row, UnansweredPart, collect
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import (
    ACTIVE_PRODUCERS,
    CLIENT_QUOTAS,
    CLIENT_SUBSCRIPTIONS,
    CONFIGS,
    GROUP_ASSIGNMENTS,
    GROUP_OFFSETS,
    GROUPS,
    MOVING_REPLICAS,
    PARTITION_OFFSETS,
    REPLICA_SIZES,
    SETTINGS,
    TRANSACTIONAL_IDS,
)
from quotaflow.udfs.rules.pseudonym import Pseudonyms


class ClusterObserver:
    """Reads a cluster; each answer when a table first needs it.

    `current_topics` returns the names of earlier snapshots. `settings` are rows of conf for the
    table settings. `pseudonyms` hide the names of clients in what the cluster answers.
    """

    def __init__(
        self,
        state: ClusterState,
        current_topics: Callable[[], set[str]],
        settings: Iterable[Row] = (),
        pseudonyms: Pseudonyms | None = None,
    ) -> None:
        self.state = state
        self.settings = settings
        self.pseudonyms = pseudonyms
        self._current_topics = current_topics

    def observed(self, table: Table) -> ObservedRows:
        """All rows of the cluster for a table."""
        return _OBSERVED[table.name](self)

    @cached_property
    def brokers(self) -> topology.ObservedBrokers:
        """The registered brokers."""
        return topology.brokers(self.state)

    @cached_property
    def topology(self) -> topology.Topology:
        """All topics and their replicas."""
        return topology.topology(self.state, self._current_topics())

    @cached_property
    def groups(self) -> groups.ObservedGroups:
        """All groups and their members."""
        return groups.observe(self.state, self.brokers)

    @cached_property
    def group_offsets(self) -> list[Row | UnansweredPart]:
        """Offsets of all groups; ends are read after them, so no lag is below zero."""
        return group_offsets.observe(self.state, self.groups)

    @cached_property
    def client_metrics(self) -> list[Row | UnansweredPart]:
        """Configs of client-metrics resources."""
        return list(self.hidden(configs.of_client_metrics(self.state)))

    @cached_property
    def topic_configs(self) -> list[Row | UnansweredPart]:
        """Configs that are set on topics."""
        return list(configs.of_topics(self.state, self.topology))

    @property
    def read_partitions(self) -> set[Partition]:
        """Partitions whose offsets are asked for: that a group reads, or with remote storage.

        A group that never committed reads those that its members have.
        """
        of_groups = group_offsets.partitions_of(self.group_offsets)
        of_members = group_assignments.partitions_of(self.groups)
        return of_groups | of_members | partition_offsets.tiered(self.topic_configs, self.topology)

    def hidden(self, rows: Iterable[Row | UnansweredPart]) -> Iterator[Row | UnansweredPart]:
        """Quotas, or configs of client-metrics resources, with pseudonyms for clients."""
        names = self.pseudonyms
        for each in rows:
            yield (
                each
                if names is None or isinstance(each, UnansweredPart)
                else dict(names.config(each))
            )

    @property
    def configs(self) -> Iterator[Row | UnansweredPart]:
        """Configs of all client-metrics resources, topics and brokers."""
        return chain(
            self.client_metrics,
            self.topic_configs,
            configs.of_brokers(self.state, self.brokers),
        )


def _subscriptions(observer: ClusterObserver) -> ObservedRows:
    """Configs of client-metrics resources; an unanswered part makes all of them unanswered."""
    seen = collect(CONFIGS, observer.client_metrics)
    gaps = tuple(UnansweredPart(gap.reason) for gap in seen.unanswered)
    return ObservedRows(CLIENT_SUBSCRIPTIONS, seen.rows, gaps)


_OBSERVED: Mapping[str, Callable[[ClusterObserver], ObservedRows]] = {
    "brokers": lambda observer: observer.brokers.observed,
    "topics": lambda observer: observer.topology.topics,
    "replicas": lambda observer: observer.topology.replicas,
    "replica_sizes": lambda observer: collect(
        REPLICA_SIZES, replica_sizes.observe(observer.state, observer.brokers)
    ),
    "moving_replicas": lambda observer: collect(
        MOVING_REPLICAS, moving_replicas.observe(observer.state)
    ),
    "configs": lambda observer: collect(CONFIGS, observer.configs),
    "client_quotas": lambda observer: collect(
        CLIENT_QUOTAS, observer.hidden(client_quotas.observe(observer.state)), client_quotas.SETTER
    ),
    "active_producers": lambda observer: collect(
        ACTIVE_PRODUCERS, producers.active(observer.state, observer.topology)
    ),
    "transactional_ids": lambda observer: collect(
        TRANSACTIONAL_IDS, producers.transactional(observer.state, observer.brokers)
    ),
    "groups": lambda observer: collect(GROUPS, observer.groups.rows()),
    "group_assignments": lambda observer: collect(
        GROUP_ASSIGNMENTS, group_assignments.observe(observer.groups, observer.pseudonyms)
    ),
    "group_offsets": lambda observer: collect(GROUP_OFFSETS, observer.group_offsets),
    "partition_offsets": lambda observer: collect(
        PARTITION_OFFSETS,
        partition_offsets.observe(observer.state, observer.topology, observer.read_partitions),
    ),
    "client_subscriptions": _subscriptions,
    "settings": lambda observer: collect(
        SETTINGS, chain(observer.settings, settings.of_probes(observer.state))
    ),
}

SNAPSHOT_TABLES = tuple(TABLES[name] for name in _OBSERVED)
"""Tables that a snapshot fills, in the order in which it reads the cluster."""
