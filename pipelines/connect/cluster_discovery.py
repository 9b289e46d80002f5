"""Discovers a cluster for init from its brokers, or assumes one when offline."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from kafka import KafkaAdminClient
from kafka import errors as kafka_errors

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import KafkaError
from quotaflow.pipelines.kafka import admin, release
from quotaflow.pipelines.kafka.cluster_state import ClusterState, UnansweredError, sender
from quotaflow.pipelines.kafka.release import NEWEST, Release

_ASSUMED_BROKERS = 3


@dataclass(frozen=True, slots=True)
class Discovery:
    """A cluster's id, its brokers with their racks, those of our topics that exist, the release of
    its oldest broker, and the listeners that carry raft; null if the brokers did not name these.

    Without an id the cluster was not read, and three brokers of the newest release are assumed.
    """

    cluster_id: str | None
    racks: dict[int, str | None]
    topics: frozenset[str]
    release: Release = NEWEST
    raft_listeners: frozenset[str] | None = None

    @property
    def broker_count(self) -> int:
        """The number of brokers, read or assumed."""
        return len(self.racks) or _ASSUMED_BROKERS


OFFLINE = Discovery(None, {}, frozenset())


def discover(conf: Conf) -> Discovery:
    """Read the cluster of conf. Raises KafkaError if it does not answer."""
    ingest = conf.ingest
    names = [ingest.request_log_topic, ingest.receiver_topic, ingest.otlp_topic]
    names.append(conf.feedback.lease_topic)
    properties = conf.kafka.login
    cluster = admin.describe(properties, [n for n in names if n], conf.kafka.cluster_id)
    with admin.client(properties) as client:
        state = ClusterState(sender(client))
        try:
            brokers = state.brokers()
        except UnansweredError as error:
            raise KafkaError(f"the cluster did not list its brokers: {error}") from None
        broker_ids = [broker["broker_id"] for broker in brokers]
        releases = list(_releases(client, broker_ids))
        try:
            raft_listeners = state.raft_listeners(broker_ids)
        except UnansweredError:
            raft_listeners = None
    racks = {broker["broker_id"]: broker["rack"] for broker in brokers}
    oldest = min(releases, default=NEWEST)
    topics = frozenset(cluster.topics)
    return Discovery(cluster.cluster_id, racks, topics, oldest, raft_listeners)


def _releases(client: KafkaAdminClient, brokers: Iterable[int]) -> Iterator[Release]:
    """Of the brokers that answer: one that is away does not keep files from being written."""
    for broker_id in brokers:
        with suppress(kafka_errors.KafkaError):
            yield release.of_broker(client, broker_id)
