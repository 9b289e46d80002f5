"""Discovers a cluster for init from its brokers, or assumes one when offline."""

from dataclasses import dataclass

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import KafkaError
from quotaflow.pipelines.kafka import admin
from quotaflow.pipelines.kafka.cluster_state import ClusterState, UnansweredError, sender

_ASSUMED_BROKERS = 3


@dataclass(frozen=True, slots=True)
class Discovery:
    """A cluster's id, its brokers with their racks, and those of our topics that exist.

    Without an id the cluster was not read, and three brokers are assumed.
    """

    cluster_id: str | None
    racks: dict[int, str | None]
    topics: frozenset[str]

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
    properties = conf.kafka.properties
    cluster = admin.describe(properties, [n for n in names if n], conf.kafka.cluster_id)
    with admin.client(properties) as client:
        try:
            brokers = ClusterState(sender(client)).brokers()
        except UnansweredError as error:
            raise KafkaError(f"the cluster did not list its brokers: {error}") from None
    racks = {broker["broker_id"]: broker["rack"] for broker in brokers}
    return Discovery(cluster.cluster_id, racks, frozenset(cluster.topics))
