"""A cluster that answers Kafka's own requests from what a test says it is made of."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from kafka import errors as kafka_errors
from kafka.protocol import admin
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from quotaflow.pipelines.kafka import group_messages

from ...rows import Row
from . import fake_groups
from .fake_groups import MadeGroup
from .plain_messages import message, sent

CLUSTER_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC = 31, 29, 3
NOT_LEADER, STORAGE_ERROR, LOADING = 6, 56, 14
TOPIC, BROKER, CLIENT_METRICS = 2, 4, 16
ON_TOPIC, BY_DEFAULT, OF_RESOURCE = 1, 5, 7
Config = tuple[str, str | None, int]
Refusals = dict[tuple[str, Any], int]


@dataclass
class MadeCluster:
    """Brokers 1 to 3, the last one maybe fenced, and every topic with three replicas.

    `log_ends` has high watermarks; other partitions end at 100.
    `moves` has the brokers that a partition's reassignment adds, and those that it removes.
    `refused` are error codes by API and what was asked of: a broker, topic, log dir, or None.
    """

    topics: dict[str, int] = field(default_factory=dict)
    configs: dict[tuple[int, str], list[Config]] = field(default_factory=dict)
    quotas: list[tuple[dict[str, str | None], dict[str, float]]] = field(default_factory=list)
    producers: dict[tuple[str, int], list[dict[str, int]]] = field(default_factory=dict)
    transactions: dict[int, list[tuple[str, int]]] = field(default_factory=dict)
    moves: dict[tuple[str, int], tuple[list[int], list[int]]] = field(default_factory=dict)
    groups: dict[str, MadeGroup] = field(default_factory=dict)
    log_ends: dict[tuple[str, int], int] = field(default_factory=dict)
    fenced: set[int] = field(default_factory=set)
    refused: Refusals = field(default_factory=dict)
    unreachable: set[int] = field(default_factory=set)
    share_offsets_version: int = 1
    tiered: int = 9
    made: int = 1
    page: int = 2_000
    sent: list[tuple[str, int | None]] = field(default_factory=list)

    def __call__(self, request: Any, broker_id: int | None) -> Any:
        """The response to one request."""
        api = type(request).__name__.removesuffix("Request")
        self.sent.append((api, broker_id))
        if broker_id in self.unreachable:
            raise kafka_errors.KafkaConnectionError("gone")
        if self.refused.get((api, "version")):
            raise kafka_errors.IncompatibleBrokerVersion(api)
        answer: Any = getattr(self, f"_{api}")
        return answer(request, broker_id)

    def code(self, api: str, subject: Any) -> int:
        return self.refused.get((api, subject), 0)

    def _DescribeCluster(self, *_: Any) -> Any:  # noqa: N802  named for the API
        brokers = [
            {"broker_id": i, "host": "h", "port": 9_090 + i, "is_fenced": i in self.fenced}
            for i in (1, 2, 3)
        ]
        return message(admin.DescribeClusterResponse, version=2, brokers=brokers)

    def _DescribeQuorum(self, *_: Any) -> Any:  # noqa: N802
        code = self.code("DescribeQuorum", None)
        topics = [{"partitions": [{"leader_id": 2}]}]
        return message(admin.DescribeQuorumResponse, error_code=code, topics=topics)

    def _DescribeTopicPartitions(self, request: Any, _: Any) -> Any:  # noqa: N802
        kind = admin.DescribeTopicPartitionsResponse
        cursor = request.cursor and (request.cursor.topic_name, request.cursor.partition_index)
        rows = self._partitions([topic.name for topic in request.topics], cursor)
        topics: list[Row] = []
        size = 0
        for name, index in rows:
            if size == min(self.page, request.response_partition_limit):
                place = {"topic_name": name, "partition_index": index}
                return message(kind, topics=topics, next_cursor=place)
            if not topics or topics[-1]["name"] != name:
                topics.append(self._topic("DescribeTopicPartitions", name))
            if not topics[-1]["error_code"]:
                topics[-1]["partitions"].append(self._partition(name, index))
                size += 1
        return message(kind, topics=topics, next_cursor=None)

    def _Metadata(self, request: MetadataRequest, _: Any) -> Any:  # noqa: N802
        topics: dict[str, Row] = {}
        for name, index in self._partitions([topic.name for topic in request.topics or ()], None):
            topic = topics.setdefault(name, self._topic("Metadata", name))
            topic["partitions"].append(self._partition(name, index))
        return message(MetadataResponse, version=12, topics=list(topics.values()))

    def _partitions(
        self, named: list[str], cursor: tuple[str, int] | None
    ) -> Iterator[tuple[str, int]]:
        hidden = {
            subject
            for (api, subject), code in self.refused.items()
            if code and isinstance(subject, str)
        }
        for name in sorted(named or self.topics.keys() - hidden):
            for index in range(self.topics.get(name, 1)):
                if cursor is None or (name, index) >= cursor:
                    yield name, index

    def _topic(self, api: str, name: str) -> Row:
        return {
            "error_code": self.code(api, name) or (0 if name in self.topics else UNKNOWN_TOPIC),
            "name": name,
            "topic_id": uuid5(NAMESPACE_URL, f"{name} made {self.made} times"),
            "is_internal": name[0] == "_",
            "partitions": [],
        }

    def _partition(self, name: str, index: int) -> Row:
        replicas = [(index + i) % 3 + 1 for i in range(3)]
        alive = [broker for broker in replicas if broker not in self.fenced]
        return {
            "partition_index": index,
            "leader_id": -1 if name.startswith("lost") else alive[0],
            "replica_nodes": replicas,
            "isr_nodes": alive,
            "offline_replicas": [broker for broker in replicas if broker in self.fenced],
        }

    def _ListConfigResources(self, *_: Any) -> Any:  # noqa: N802
        names = [{"resource_name": name} for kind, name in self.configs if kind == CLIENT_METRICS]
        code = self.code("ListConfigResources", None)
        return message(admin.ListConfigResourcesResponse, error_code=code, config_resources=names)

    def _DescribeConfigs(self, request: Any, _: Any) -> Any:  # noqa: N802
        results = []
        for kind, name, _keys in map(tuple, request.resources):
            code = self.code("DescribeConfigs", name)
            configs = [
                {
                    "name": key,
                    "value": value,
                    "config_source": source,
                    "is_sensitive": "password" in key,
                }
                for key, value, source in self.configs.get((kind, name), [])
                if not code
            ]
            resource = {"resource_type": kind, "resource_name": name, "configs": configs}
            results.append({"error_code": code} | resource)
        return message(admin.DescribeConfigsResponse, results=results)

    def _DescribeClientQuotas(self, *_: Any) -> Any:  # noqa: N802
        entries = [
            {
                "entity": [{"entity_type": t, "entity_name": n} for t, n in entity.items()],
                "values": [{"key": key, "value": value} for key, value in values.items()],
            }
            for entity, values in self.quotas
        ]
        code = self.code("DescribeClientQuotas", None)
        given = None if code else entries
        return message(admin.DescribeClientQuotasResponse, error_code=code, entries=given)

    def _AlterClientQuotas(self, request: Any, _: Any) -> Any:  # noqa: N802
        assert request.validate_only
        code = self.code("AlterClientQuotas", request.entries[0].ops[0].key)
        answers = [{"error_code": code, "error_message": "Invalid", "entity": []}]
        return message(admin.AlterClientQuotasResponse, entries=answers)

    def _DescribeLogDirs(self, _: Any, broker_id: int) -> Any:  # noqa: N802
        topics = [
            {
                "name": name,
                "partitions": [
                    {"partition_index": i, "partition_size": 100 + i} for i in range(count)
                ],
            }
            for name, count in self.topics.items()
        ]
        dirs: list[Row] = [{"log_dir": "/data", "topics": topics}]
        if code := self.code("DescribeLogDirs", "/broken"):
            dirs.append({"error_code": code, "log_dir": "/broken"})
        code = self.code("DescribeLogDirs", broker_id)
        return message(admin.DescribeLogDirsResponse, error_code=code, results=dirs)

    def _ListPartitionReassignments(self, *_: Any) -> Any:  # noqa: N802
        topics = []
        for (topic, partition), (adding, removing) in self.moves.items():
            brokers = {"adding_replicas": adding, "removing_replicas": removing}
            topics.append({"name": topic, "partitions": [{"partition_index": partition} | brokers]})
        code = self.code("ListPartitionReassignments", None)
        return message(admin.ListPartitionReassignmentsResponse, error_code=code, topics=topics)

    def _DescribeProducers(self, request: Any, _: int) -> Any:  # noqa: N802
        topics = []
        for topic in request.topics:
            partitions = []
            for index in topic.partition_indexes:
                at = (topic.name, index)
                code = self.code("DescribeProducers", at)
                states = [] if code else self.producers.get(at, [])
                partitions.append(
                    {"partition_index": index, "error_code": code, "active_producers": states}
                )
            topics.append({"name": topic.name, "partitions": partitions})
        return message(admin.DescribeProducersResponse, topics=topics)

    def _ListTransactions(self, _: Any, broker_id: int) -> Any:  # noqa: N802
        states = [
            {"transactional_id": i, "producer_id": p, "transaction_state": "Ongoing"}
            for i, p in self.transactions.get(broker_id, [])
        ]
        code = self.code("ListTransactions", broker_id)
        return message(admin.ListTransactionsResponse, error_code=code, transaction_states=states)

    def _ListGroups(self, _: Any, broker_id: int) -> Any:  # noqa: N802
        return fake_groups.listed(self.groups, broker_id, self.code("ListGroups", broker_id))

    def _DescribeGroups(self, request: Any, _: int) -> Any:  # noqa: N802
        return self._described(admin.DescribeGroupsResponse, 5, request.groups, fake_groups.classic)

    def _ConsumerGroupDescribe(self, request: Any, _: int) -> Any:  # noqa: N802
        kind = group_messages.ConsumerGroupDescribeResponse
        return self._described(kind, 1, request.group_ids, fake_groups.with_epochs)

    def _ShareGroupDescribe(self, request: Any, _: int) -> Any:  # noqa: N802
        kind = group_messages.ShareGroupDescribeResponse
        return self._described(kind, 1, request.group_ids, fake_groups.with_epochs)

    def _StreamsGroupDescribe(self, request: Any, _: int) -> Any:  # noqa: N802
        kind = group_messages.StreamsGroupDescribeResponse
        return self._described(kind, 0, request.group_ids, fake_groups.streams)

    def _described(
        self, kind: Any, version: int, names: list[str], form: Callable[[str, MadeGroup, int], Row]
    ) -> Any:
        api = kind.__name__.removesuffix("Response")
        answers = [form(name, self.groups[name], self.code(api, name)) for name in names]
        return sent(kind, version, groups=answers)

    def _OffsetFetch(self, request: Any, _: int) -> Any:  # noqa: N802
        ids = [group.group_id for group in request.groups]
        codes = {name: self.code("OffsetFetch", name) for name in ids}
        return fake_groups.committed(self.groups, ids, codes)

    def _DescribeShareGroupOffsets(self, request: Any, _: int) -> Any:  # noqa: N802
        ids = [group.group_id for group in request.groups]
        return fake_groups.share_offsets(self.groups, ids, self.share_offsets_version)

    def _ListOffsets(self, request: Any, _: int) -> Any:  # noqa: N802
        def offset(partition: tuple[str, int], which: int) -> tuple[int, int]:
            code = self.code("ListOffsets", partition) or self.code("ListOffsets", which)
            end = self.log_ends.get(partition, 100)
            return (-1, code) if code else ({-1: end, -2: 0, -4: 10, -5: self.tiered}[which], 0)

        return fake_groups.list_offsets(request, offset)
