"""A cluster that answers Kafka's own requests from what a test says it is made of."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from kafka import errors as kafka_errors
from kafka.protocol import admin
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from quotaflow.pipelines.kafka import group_messages

from . import fake_groups
from .fake_groups import MadeGroup

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
        broker_type = admin.DescribeClusterResponse.DescribeClusterBroker
        brokers = [
            broker_type(
                broker_id=i, host="h", port=9_090 + i, rack=None, is_fenced=i in self.fenced
            )
            for i in (1, 2, 3)
        ]
        return admin.DescribeClusterResponse(version=2, error_code=0, brokers=brokers)

    def _DescribeQuorum(self, *_: Any) -> Any:  # noqa: N802
        response_type = admin.DescribeQuorumResponse
        partition = response_type.TopicData.PartitionData(error_code=0, leader_id=2)
        return response_type(
            error_code=self.code("DescribeQuorum", None),
            topics=[response_type.TopicData(partitions=[partition])],
        )

    def _DescribeTopicPartitions(self, request: Any, _: Any) -> Any:  # noqa: N802
        response_type = admin.DescribeTopicPartitionsResponse
        kind = response_type.DescribeTopicPartitionsResponseTopic
        cursor = request.cursor and (request.cursor.topic_name, request.cursor.partition_index)
        rows = self._partitions([topic.name for topic in request.topics], cursor)
        topics: list[Any] = []
        size = 0
        for name, index in rows:
            if size == min(self.page, request.response_partition_limit):
                return response_type(
                    topics=topics,
                    next_cursor=response_type.Cursor(topic_name=name, partition_index=index),
                )
            if not topics or topics[-1].name != name:
                topics.append(self._topic(kind, "DescribeTopicPartitions", name))
            if not topics[-1].error_code:
                topics[-1].partitions.append(
                    self._partition(kind.DescribeTopicPartitionsResponsePartition, name, index)
                )
                size += 1
        return response_type(topics=topics, next_cursor=None)

    def _Metadata(self, request: MetadataRequest, _: Any) -> Any:  # noqa: N802
        kind = MetadataResponse.MetadataResponseTopic
        topics: dict[str, Any] = {}
        for name, index in self._partitions([topic.name for topic in request.topics or ()], None):
            topic = topics.setdefault(name, self._topic(kind, "Metadata", name))
            topic.partitions.append(self._partition(kind.MetadataResponsePartition, name, index))
        return MetadataResponse(version=12, error_code=0, topics=list(topics.values()))

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

    def _topic(self, kind: Any, api: str, name: str) -> Any:
        code = self.code(api, name) or (0 if name in self.topics else UNKNOWN_TOPIC)
        identity = uuid5(NAMESPACE_URL, f"{name} made {self.made} times")
        return kind(
            error_code=code, name=name, topic_id=identity, is_internal=name[0] == "_", partitions=[]
        )

    def _partition(self, kind: Any, name: str, index: int) -> Any:
        replicas = [(index + i) % 3 + 1 for i in range(3)]
        alive = [broker for broker in replicas if broker not in self.fenced]
        return kind(
            error_code=0,
            partition_index=index,
            leader_id=-1 if name.startswith("lost") else alive[0],
            replica_nodes=replicas,
            isr_nodes=alive,
            offline_replicas=[broker for broker in replicas if broker in self.fenced],
        )

    def _ListConfigResources(self, *_: Any) -> Any:  # noqa: N802
        response_type = admin.ListConfigResourcesResponse
        names = [name for kind, name in self.configs if kind == CLIENT_METRICS]
        return response_type(
            error_code=self.code("ListConfigResources", None),
            config_resources=[response_type.ConfigResource(resource_name=name) for name in names],
        )

    def _DescribeConfigs(self, request: Any, _: Any) -> Any:  # noqa: N802
        result_type = admin.DescribeConfigsResponse.DescribeConfigsResult
        results = []
        for kind, name, _keys in map(tuple, request.resources):
            code = self.code("DescribeConfigs", name)
            configs = [
                result_type.DescribeConfigsResourceResult(
                    name=key, value=value, config_source=source, is_sensitive="password" in key
                )
                for key, value, source in self.configs.get((kind, name), [])
                if not code
            ]
            results.append(
                result_type(
                    error_code=code, resource_type=kind, resource_name=name, configs=configs
                )
            )
        return admin.DescribeConfigsResponse(results=results)

    def _DescribeClientQuotas(self, *_: Any) -> Any:  # noqa: N802
        response_type = admin.DescribeClientQuotasResponse
        entry = response_type.EntryData
        entries = [
            entry(
                entity=[entry.EntityData(entity_type=t, entity_name=n) for t, n in entity.items()],
                values=[entry.ValueData(key=key, value=value) for key, value in values.items()],
            )
            for entity, values in self.quotas
        ]
        code = self.code("DescribeClientQuotas", None)
        return response_type(error_code=code, entries=None if code else entries)

    def _AlterClientQuotas(self, request: Any, _: Any) -> Any:  # noqa: N802
        response_type = admin.AlterClientQuotasResponse
        assert request.validate_only
        code = self.code("AlterClientQuotas", request.entries[0].ops[0].key)
        return response_type(
            entries=[response_type.EntryData(error_code=code, error_message="Invalid", entity=[])]
        )

    def _DescribeLogDirs(self, _: Any, broker_id: int) -> Any:  # noqa: N802
        response_type = admin.DescribeLogDirsResponse
        result = response_type.DescribeLogDirsResult
        kind = result.DescribeLogDirsTopic
        code = self.code("DescribeLogDirs", "/broken")
        topics = [
            kind(
                name=name,
                partitions=[
                    kind.DescribeLogDirsPartition(
                        partition_index=i, partition_size=100 + i, offset_lag=0, is_future_key=False
                    )
                    for i in range(count)
                ],
            )
            for name, count in self.topics.items()
        ]
        dirs = [result(error_code=0, log_dir="/data", topics=topics)]
        if code:
            dirs.append(result(error_code=code, log_dir="/broken", topics=[]))
        return response_type(error_code=self.code("DescribeLogDirs", broker_id), results=dirs)

    def _ListPartitionReassignments(self, *_: Any) -> Any:  # noqa: N802
        response_type = admin.ListPartitionReassignmentsResponse
        kind = response_type.OngoingTopicReassignment
        topics = [
            kind(
                name=topic,
                partitions=[
                    kind.OngoingPartitionReassignment(
                        partition_index=partition,
                        replicas=[],
                        adding_replicas=adding,
                        removing_replicas=removing,
                    )
                ],
            )
            for (topic, partition), (adding, removing) in self.moves.items()
        ]
        return response_type(
            error_code=self.code("ListPartitionReassignments", None), topics=topics
        )

    def _DescribeProducers(self, request: Any, _: int) -> Any:  # noqa: N802
        topic_type = admin.DescribeProducersResponse.TopicResponse
        topics = []
        for topic in request.topics:
            partitions = []
            for index in topic.partition_indexes:
                at = (topic.name, index)
                states = [
                    topic_type.PartitionResponse.ProducerState(**state)
                    for state in self.producers.get(at, [])
                ]
                code = self.code("DescribeProducers", at)
                partitions.append(
                    topic_type.PartitionResponse(
                        partition_index=index,
                        error_code=code,
                        active_producers=[] if code else states,
                    )
                )
            topics.append(topic_type(name=topic.name, partitions=partitions))
        return admin.DescribeProducersResponse(topics=topics)

    def _ListTransactions(self, _: Any, broker_id: int) -> Any:  # noqa: N802
        response_type = admin.ListTransactionsResponse
        states = [
            response_type.TransactionState(
                transactional_id=i, producer_id=p, transaction_state="Ongoing"
            )
            for i, p in self.transactions.get(broker_id, [])
        ]
        return response_type(
            error_code=self.code("ListTransactions", broker_id), transaction_states=states
        )

    def _ListGroups(self, _: Any, broker_id: int) -> Any:  # noqa: N802
        return fake_groups.listed(self.groups, broker_id, self.code("ListGroups", broker_id))

    def _DescribeGroups(self, request: Any, _: int) -> Any:  # noqa: N802
        answers = [
            fake_groups.classic(name, self.groups[name], self.code("DescribeGroups", name))
            for name in request.groups
        ]
        return fake_groups.described(admin.DescribeGroupsResponse, answers, 5)

    def _ConsumerGroupDescribe(self, request: Any, _: int) -> Any:  # noqa: N802
        return self._with_epochs("ConsumerGroupDescribe", request, 1)

    def _ShareGroupDescribe(self, request: Any, _: int) -> Any:  # noqa: N802
        return self._with_epochs("ShareGroupDescribe", request, 1)

    def _with_epochs(self, api: str, request: Any, version: int) -> Any:
        response = getattr(group_messages, f"{api}Response")
        answers = [
            fake_groups.with_epochs(
                response.DescribedGroup, name, self.groups[name], self.code(api, name)
            )
            for name in request.group_ids
        ]
        return fake_groups.described(response, answers, version)

    def _StreamsGroupDescribe(self, request: Any, _: int) -> Any:  # noqa: N802
        answers = [
            fake_groups.streams(name, self.groups[name], self.code("StreamsGroupDescribe", name))
            for name in request.group_ids
        ]
        return fake_groups.described(group_messages.StreamsGroupDescribeResponse, answers, 0)

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
