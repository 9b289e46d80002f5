"""What a snapshot asks a cluster, by the table that it fills; what several need is asked once."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain

from quotaflow.pipelines.kafka.cluster_state import ClusterState
from quotaflow.pipelines.snapshots import (
    client_quotas,
    configs,
    producers,
    replica_sizes,
    settings,
    topology,
)
from quotaflow.pipelines.snapshots.observations import ObservedRows, Row, UnansweredPart, collect
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.snapshots import (
    ACTIVE_PRODUCERS,
    CLIENT_QUOTAS,
    CLIENT_SUBSCRIPTIONS,
    CONFIGS,
    SETTINGS,
    TRANSACTIONAL_IDS,
)
from quotaflow.schemas.tables.topology import REPLICA_SIZES
from quotaflow.udfs.rules.pseudonym import Pseudonyms


class ClusterObserver:
    """A cluster, asked when a table first needs it; `standing_topics` tells names known before.

    `settings` are rows that stand beside what the cluster tells; `pseudonyms` hide clients in what
    it tells.
    """

    def __init__(
        self,
        state: ClusterState,
        standing_topics: Callable[[], set[str]],
        settings: Iterable[Row] = (),
        pseudonyms: Pseudonyms | None = None,
    ) -> None:
        self.state = state
        self.settings = settings
        self.pseudonyms = pseudonyms
        self._current_topics = standing_topics

    def observed(self, table: Table) -> ObservedRows:
        """Everything the cluster tells that belongs into a table."""
        return _SEEN[table.name](self)

    @cached_property
    def brokers(self) -> topology.ObservedBrokers:
        """The registered brokers."""
        return topology.brokers(self.state)

    @cached_property
    def topology(self) -> topology.Topology:
        """All topics and their replicas."""
        return topology.topology(self.state, self._current_topics())

    @cached_property
    def client_metrics(self) -> list[Row | UnansweredPart]:
        """Configs of client-metrics resources."""
        return list(self.hidden(configs.of_client_metrics(self.state)))

    def hidden(self, rows: Iterable[Row | UnansweredPart]) -> Iterator[Row | UnansweredPart]:
        """Quotas, or configs of client-metrics resources, without the names of clients."""
        names = self.pseudonyms
        for each in rows:
            yield (
                each
                if names is None or isinstance(each, UnansweredPart)
                else dict(names.config(each))
            )

    @property
    def configs(self) -> Iterator[Row | UnansweredPart]:
        """Configs of everything that has some."""
        return chain(
            self.client_metrics,
            configs.of_topics(self.state, self.topology),
            configs.of_brokers(self.state, self.brokers),
        )


def _subscriptions(asked: ClusterObserver) -> ObservedRows:
    """Configs of client-metrics resources: with a gap in them nothing follows."""
    seen = collect(CONFIGS, asked.client_metrics)
    gaps = tuple(UnansweredPart(gap.reason) for gap in seen.unanswered)
    return ObservedRows(CLIENT_SUBSCRIPTIONS, seen.rows, gaps)


_SEEN: Mapping[str, Callable[[ClusterObserver], ObservedRows]] = {
    "brokers": lambda asked: asked.brokers.observed,
    "topics": lambda asked: asked.topology.topics,
    "replicas": lambda asked: asked.topology.replicas,
    "replica_sizes": lambda asked: collect(
        REPLICA_SIZES, replica_sizes.observe(asked.state, asked.brokers)
    ),
    "configs": lambda asked: collect(CONFIGS, asked.configs),
    "client_quotas": lambda asked: collect(
        CLIENT_QUOTAS, asked.hidden(client_quotas.observe(asked.state)), client_quotas.SETTER
    ),
    "active_producers": lambda asked: collect(
        ACTIVE_PRODUCERS, producers.active(asked.state, asked.topology)
    ),
    "transactional_ids": lambda asked: collect(
        TRANSACTIONAL_IDS, producers.transactional(asked.state, asked.brokers)
    ),
    "client_subscriptions": _subscriptions,
    "settings": lambda asked: collect(
        SETTINGS, chain(asked.settings, settings.of_probes(asked.state))
    ),
}

SNAPSHOT_TABLES = tuple(TABLES[name] for name in _SEEN)
"""Tables that a snapshot fills, in the order in which it asks."""
