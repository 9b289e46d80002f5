"""The connection of doctor to a cluster: an admin client with timeouts of seconds."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kafka import KafkaAdminClient
from kafka import errors as kafka_errors
from kafka.protocol.metadata import MetadataRequest

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.kafka import admin
from quotaflow.pipelines.kafka.cluster_state import ClusterState, UnansweredError, sender

_WAIT_MS = 10_000


@dataclass(frozen=True, slots=True)
class Probe:
    """Conf, kafka-python's admin client, and the same client for requests of our own."""

    conf: Conf
    client: KafkaAdminClient
    state: ClusterState

    def unauthorized_topics(self, topics: Iterable[str]) -> frozenset[str]:
        """Those of these topics that this login may not see, existing or not."""
        names = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=names, allow_auto_topic_creation=False)
        try:
            answers = self.state.ask(request).topics if names else []
        except UnansweredError:
            return frozenset()
        refused = kafka_errors.TopicAuthorizationFailedError.errno
        return frozenset(topic.name for topic in answers if topic.error_code == refused)


@contextmanager
def open_probe(conf: Conf) -> Iterator[Probe]:
    """A client for the cluster of conf."""
    bounds = {"request_timeout_ms": _WAIT_MS, "client_id": "quotaflow-doctor"}
    with admin.client(conf.kafka.login, **bounds) as client:
        yield Probe(conf, client, ClusterState(sender(client), attempts=1))
