"""The state of a cluster: Kafka's own requests through kafka-python, with answers in chunks.

kafka-python has no method for client quotas, and some of its methods raise at the first partition
that is refused. So this module sends the requests itself, and alone uses the private names of
kafka-python for that. A refusal for one thing does not hide the answers for others.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kafka import KafkaAdminClient
from kafka import errors as kafka_errors
from kafka.admin import ConfigResourceType
from kafka.protocol import admin as requests
from kafka.protocol.metadata import MetadataRequest

Send = Callable[[Any, int | None], Any]
"""Sends a request to a broker, to any of them with None; returns its response."""
Partition = tuple[str, int]
_T = TypeVar("_T")

CLIENT_METRICS, TOPIC, BROKER, BROKER_LOGGER = (
    ConfigResourceType.CLIENT_METRICS.value,
    ConfigResourceType.TOPIC.value,
    ConfigResourceType.BROKER.value,
    ConfigResourceType.BROKER_LOGGER.value,
)
NO_BROKER = kafka_errors.BrokerNotAvailableError.message
NO_LEADER = kafka_errors.LeaderNotAvailableError.message
UNKNOWN_TOPIC = kafka_errors.UnknownTopicOrPartitionError.message

_PROBED_USER = "quotaflow-probe"
_PARTITIONS_PER_PAGE = 2_000
_NAMES_PER_REQUEST = 100
_PARTITIONS_PER_REQUEST = 500
_QUORUM_TOPIC = "__cluster_metadata"
_RAFT_LISTENERS = "controller.listener.names"
_FENCED_FROM_VERSION = 2

MAX_WAIT_S = 60.0
"""No request begins again this long after it was first sent. A request of `admin.client` ends after
30 s, so a broker that is slow once is asked twice, and one that hangs costs a minute of a run."""

_FIRST_PAUSE_S = 0.5
_WRITES = (requests.AlterClientQuotasRequest, requests.IncrementalAlterConfigsRequest)
_TIMEOUTS = (kafka_errors.RequestTimedOutError, kafka_errors.KafkaTimeoutError)


class UnansweredError(Exception):
    """A request that was refused or not answered; its text is Kafka's name of the error."""


@dataclass(frozen=True, slots=True)
class ClusterAnswer:
    """The subject of a request, its answer, and the reason if there is none (Kafka's name)."""

    subject: Any
    content: Any
    reason: str | None

    def check(self) -> None:
        """Raise UnansweredError if there is no answer."""
        if self.reason is not None:
            raise UnansweredError(self.reason)


@dataclass(frozen=True, slots=True)
class ClusterState:
    """Sends requests to a cluster.

    A broker that is away gets no more of them after the first. A slow one gets each request again,
    `attempts` times within MAX_WAIT_S, and no more of them after that. `admin.client` waits where a
    broker throttles.
    """

    send: Send
    silent: dict[int | None, str] = field(default_factory=dict)
    attempts: int = 3
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def brokers(self) -> list[dict[str, Any]]:
        """Every registered broker; before Kafka 4.0 only those that are up, is_fenced None."""
        response = self.ask(requests.DescribeClusterRequest(include_fenced_brokers=True))
        is_fencing_reported = response.version >= _FENCED_FROM_VERSION
        return [
            {
                "broker_id": broker.broker_id,
                "host": broker.host,
                "port": broker.port,
                "rack": broker.rack,
                "is_fenced": broker.is_fenced if is_fencing_reported else None,
            }
            for broker in response.brokers
        ]

    def controller_id(self) -> int:
        """The leader of the metadata quorum (KIP-595); other answers name any broker."""
        topic = requests.DescribeQuorumRequest.TopicData
        partition = topic.PartitionData(partition_index=0)
        request = requests.DescribeQuorumRequest(
            topics=[topic(topic_name=_QUORUM_TOPIC, partitions=[partition])]
        )
        quorum = self.ask(request).topics[0].partitions[0]
        _check(quorum.error_code)
        return int(quorum.leader_id)

    def topic_pages(self, names: Iterable[str] = ()) -> Iterator[list[Any]]:
        """These topics, or all, in pages (KIP-966); a topic may continue on the next page."""
        kind = requests.DescribeTopicPartitionsRequest
        topics = sorted(names)
        cursor = None
        while True:
            request = kind(
                topics=[kind.TopicRequest(name=name) for name in topics],
                response_partition_limit=_PARTITIONS_PER_PAGE,
                cursor=cursor,
            )
            try:
                response = self.ask(request)
            except UnansweredError as error:
                if str(error) != kafka_errors.UnsupportedVersionError.message:
                    raise
                yield self._topics_at_once(topics)
                return
            yield list(response.topics)
            if response.next_cursor is None:
                return
            cursor = kind.Cursor(
                topic_name=response.next_cursor.topic_name,
                partition_index=response.next_cursor.partition_index,
            )

    def _topics_at_once(self, names: list[str]) -> list[Any]:
        """The same from brokers without pages."""
        topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(topics=topics or None, allow_auto_topic_creation=False)
        return list(self.ask(request).topics)

    def config_names(self, kind: int) -> list[str]:
        """Names of all resources of a kind that no other request lists."""
        response = self.ask(requests.ListConfigResourcesRequest(resource_types=[kind]))
        return [each.resource_name for each in response.config_resources]

    def configs(
        self, kind: int, names: Iterable[str], broker_id: int | None = None
    ) -> Iterator[ClusterAnswer]:
        """Configs of each resource of a kind, with their sources; a broker has its own."""

        def ask(chunk: list[str]) -> Iterator[ClusterAnswer]:
            request = requests.DescribeConfigsRequest(
                resources=[(kind, name, None) for name in chunk]
            )
            for result in self.ask(request, broker_id).results:
                yield ClusterAnswer(
                    result.resource_name, result.configs, error_name(result.error_code)
                )

        return in_chunks(names, _NAMES_PER_REQUEST, ask)

    def raft_listeners(self, broker_ids: Iterable[int]) -> frozenset[str]:
        """Listeners that carry raft, by these brokers' `controller.listener.names`.

        Brokers of ZooKeeper have none. Raises UnansweredError if a broker does not say.
        """
        names = set[str]()
        for broker_id in broker_ids:
            for answer in self.configs(BROKER, [str(broker_id)], broker_id):
                answer.check()
                value = {each.name: each.value for each in answer.content}.get(_RAFT_LISTENERS)
                names |= {name.strip() for name in (value or "").split(",")} - {""}
        return frozenset(names)

    def client_quotas(self) -> list[Any]:
        """Every entity that has quotas (KIP-546)."""
        request = requests.DescribeClientQuotasRequest(components=[], strict=False)
        return list(self.ask(request).entries or ())

    def refusal_of_user_quota(self, key: str) -> str | None:
        """The broker's reason why a user cannot have a quota of this key; None if one can.

        The request only validates, and sets nothing.
        """
        kind = requests.AlterClientQuotasRequest
        entry = kind.EntryData(
            entity=[kind.EntryData.EntityData(entity_type="user", entity_name=_PROBED_USER)],
            ops=[kind.EntryData.OpData(key=key, value=1.0, remove=False)],
        )
        answer = self.ask(kind(entries=[entry], validate_only=True)).entries[0]
        if answer.error_code == kafka_errors.ClusterAuthorizationFailedError.errno:
            raise UnansweredError(kafka_errors.ClusterAuthorizationFailedError.message)
        return f"{answer.error_code} {answer.error_message}" if answer.error_code else None

    def log_dirs(self, broker_id: int) -> Iterator[ClusterAnswer]:
        """The log dirs of a broker with the replicas in them."""
        request = requests.DescribeLogDirsRequest(topics=None)
        for result in self.ask(request, broker_id).results:
            yield ClusterAnswer(result.log_dir, result.topics, error_name(result.error_code))

    def reassignments(self) -> list[Any]:
        """The topics with ongoing reassignments, and their partitions (KIP-455)."""
        wait_ms = round(MAX_WAIT_S / 2 * 1_000)
        request = requests.ListPartitionReassignmentsRequest(timeout_ms=wait_ms, topics=None)
        return list(self.ask(request).topics)

    def producers(self, broker_id: int, partitions: Iterable[Partition]) -> Iterator[ClusterAnswer]:
        """Producer ids that the leader of these partitions has (KIP-664)."""
        kind = requests.DescribeProducersRequest

        def ask(chunk: list[Partition]) -> Iterator[ClusterAnswer]:
            topics = [kind.TopicRequest(name=n, partition_indexes=p) for n, p in by_topic(chunk)]
            for topic in self.ask(kind(topics=topics), broker_id).topics:
                for each in topic.partitions:
                    subject = (topic.name, each.partition_index)
                    yield ClusterAnswer(subject, each.active_producers, error_name(each.error_code))

        return in_chunks(partitions, _PARTITIONS_PER_REQUEST, ask)

    def transactions(self, broker_id: int) -> list[Any]:
        """Transactional ids that this broker coordinates, as far as the login may see them."""
        request = requests.ListTransactionsRequest(state_filters=[], producer_id_filters=[])
        return list(self.ask(request, broker_id).transaction_states)

    def ask(self, request: Any, broker_id: int | None = None) -> Any:
        """One request, to any broker or to this one. Raises UnansweredError."""
        if broker_id in self.silent:
            raise UnansweredError(self.silent[broker_id])
        try:
            response = self._answered(request, broker_id)
        except kafka_errors.KafkaError as error:
            name = getattr(error, "message", None) or type(error).__name__
            is_slow_write = isinstance(error, _TIMEOUTS) and is_write(request)
            if not isinstance(error, kafka_errors.UnsupportedVersionError) and not is_slow_write:
                self.silent[broker_id] = name
            raise UnansweredError(name) from None
        _check(getattr(response, "error_code", 0))
        return response

    def _answered(self, request: Any, broker_id: int | None) -> Any:
        """The response; a request that times out is sent again, unless it writes.

        Whether a write that timed out was made is not known, and its caller must look.
        """
        last_start = self.clock() + MAX_WAIT_S
        for attempt in range(1, self.attempts + 1):
            try:
                return self._sent(request, broker_id)
            except _TIMEOUTS:
                pause_s = _FIRST_PAUSE_S * 2 ** (attempt - 1)
                is_late = self.clock() + pause_s > last_start
                if is_write(request) or is_late or attempt == self.attempts:
                    raise
            self.sleep(pause_s)
        raise AssertionError("the last attempt returns or raises")

    def _sent(self, request: Any, broker_id: int | None) -> Any:
        if broker_id is None:
            # Try another broker: kafka-python avoids the one that just failed for a while.
            with suppress(kafka_errors.KafkaConnectionError, kafka_errors.NodeNotReadyError):
                return self.send(request, None)
        return self.send(request, broker_id)


def is_write(request: Any) -> bool:
    """Whether a request alters the cluster, and does not only ask whether it may."""
    return isinstance(request, _WRITES) and not request.validate_only


def sender(client: KafkaAdminClient) -> Send:
    """Sends by a client of kafka-python, which has no public way to send a request."""

    def send(request: Any, broker_id: int | None) -> Any:
        return client._manager.run(client._manager.send, request, broker_id)

    return send


def error_name(error_code: int) -> str | None:
    """Kafka's name of an error code; None for 0."""
    return str(kafka_errors.for_code(error_code).message) if error_code else None


def in_chunks(
    things: Iterable[_T], size: int, ask: Callable[[list[_T]], Iterator[ClusterAnswer]]
) -> Iterator[ClusterAnswer]:
    """Answers to `ask` about chunks of things; of a refused chunk each has the reason."""
    left = list(things)
    while left:
        chunk, left = left[:size], left[size:]
        try:
            yield from ask(chunk)
        except UnansweredError as error:
            yield from (ClusterAnswer(subject, (), str(error)) for subject in chunk)


def by_topic(partitions: Iterable[Partition]) -> Iterable[tuple[str, list[int]]]:
    """Each topic of the partitions, with the indexes of these."""
    indexes: Mapping[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        indexes[topic].append(partition)
    return indexes.items()


def _check(error_code: int) -> None:
    name = error_name(error_code)
    if name:
        raise UnansweredError(name)
