"""Lines of the request log, made in the form in which brokers write them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from quotaflow.demo.ports import LOOPBACK

Body = dict[str, Any]
_API_VERSIONS = {
    "PRODUCE": (0, 13),
    "FETCH": (1, 17),
    "METADATA": (3, 13),
    "OFFSET_COMMIT": (8, 8),
    "INIT_PRODUCER_ID": (22, 5),
    "INCREMENTAL_ALTER_CONFIGS": (44, 1),
    "ALTER_PARTITION_REASSIGNMENTS": (45, 1),
    "ALTER_CLIENT_QUOTAS": (49, 1),
    "ALTER_PARTITION": (56, 3),
    "STREAMS_GROUP_HEARTBEAT": (88, 0),
}
MAX_WEIGHT = 1_000
"""How many requests a line can represent, as a sampling appender writes it."""


@dataclass(frozen=True, slots=True)
class PastClient:
    """Who sends requests; `rack` is its client.rack."""

    user: str
    client_id: str
    address: str
    software: tuple[str, str] = ("apache-kafka-java", "4.1.0")
    rack: str = ""
    listener: str = "SASL_PLAINTEXT"


@dataclass(frozen=True, slots=True)
class PastRequest:
    """One request and its answer; `times` are the parts of its time in ms."""

    ts_ms: int
    broker: int
    api: str
    request: Body
    response: Body
    times: Mapping[str, float] = field(default_factory=dict)
    weight: int = 1


_USUAL = {
    **{"requestQueueTimeMs": 0.4, "localTimeMs": 0.9, "remoteTimeMs": 0.0},
    **{"responseQueueTimeMs": 0.3, "sendTimeMs": 0.2, "throttleTimeMs": 0},
}


def line(client: PastClient, made: PastRequest, number: int) -> bytes:
    """The line of a request; `number` is its correlation id."""
    key, version = _API_VERSIONS[made.api]
    header: Body = {"requestApiKey": key, "requestApiVersion": version, "correlationId": number}
    header |= {"clientId": client.client_id, "requestApiKeyName": made.api}
    times = {**_USUAL, **made.times}
    name, release = client.software
    whole: Body = {"isForwarded": False, "requestHeader": header, "request": made.request}
    whole["response"] = {"throttleTimeMs": times["throttleTimeMs"]} | made.response
    whole["connection"] = f"{LOOPBACK}:909{made.broker}-{client.address}:40000-0-1"
    whole["totalTimeMs"] = round(sum(times.values()) - times["throttleTimeMs"], 3)
    whole |= times
    whole |= {"securityProtocol": "SASL_PLAINTEXT", "principal": f"User:{client.user}"}
    whole["listener"] = client.listener
    whole["clientInformation"] = {"softwareName": name, "softwareVersion": release}
    envelope = {"ts": made.ts_ms, "broker": made.broker, "weight": made.weight, "r": whole}
    return json.dumps(envelope, separators=(",", ":")).encode()


def produce(topic_id: str, partition: int, offset: int, size: int) -> tuple[Body, Body]:
    """A batch that was appended at this offset."""
    data = [{"index": partition, "recordsSizeInBytes": size}]
    request: Body = {"transactionalId": None, "acks": -1, "timeoutMs": 30_000}
    request["topicData"] = [{"topicId": topic_id, "partitionData": data}]
    answer: Body = {"index": partition, "errorCode": 0, "baseOffset": offset, "logAppendTimeMs": -1}
    answer |= {"logStartOffset": 0, "recordErrors": [], "errorMessage": None}
    return request, {"responses": [{"topicId": topic_id, "partitionResponses": [answer]}]}


def fetch(
    topic_id: str,
    partition: int,
    offsets: tuple[int, int],
    size: int,
    rack: str = "",
    *,
    log_start: int = 0,
) -> tuple[Body, Body]:
    """A fetch without a session, from the first offset; the second is the high watermark."""
    position, end = offsets
    requested = {"partition": partition, "currentLeaderEpoch": 0, "fetchOffset": position}
    requested |= {"lastFetchedEpoch": -1, "logStartOffset": -1, "partitionMaxBytes": 1 << 20}
    request: Body = {"maxWaitMs": 500, "minBytes": 1, "maxBytes": 50 << 20, "isolationLevel": 0}
    request |= {"sessionId": 0, "sessionEpoch": -1, "forgottenTopicsData": [], "rackId": rack}
    request["topics"] = [{"topicId": topic_id, "partitions": [requested]}]
    answer: Body = {"partitionIndex": partition, "errorCode": 0, "highWatermark": end}
    answer |= {"lastStableOffset": end, "logStartOffset": log_start, "abortedTransactions": None}
    answer |= {"preferredReadReplica": -1, "recordsSizeInBytes": size}
    response = {"errorCode": 0, "sessionId": 0}
    return request, response | {"responses": [{"topicId": topic_id, "partitions": [answer]}]}


def describe(topic: str, topic_id: str) -> tuple[Body, Body]:
    """A request for metadata, whose answer names a topic."""
    named = {"name": topic, "topicId": topic_id}
    request: Body = {"topics": [named], "allowAutoTopicCreation": False}
    answer = {"errorCode": 0, "isInternal": False, "partitions": []}
    return request, {"brokers": [], "topics": [answer | named], "errorCode": 0}


def follow(topic_id: str, offsets: tuple[int, int], size: int, follower: int) -> tuple[Body, Body]:
    """A fetch of partition 0 by a follower."""
    request, response = fetch(topic_id, 0, offsets, size)
    request["replicaState"] = {"replicaId": follower, "replicaEpoch": 1}
    request["topics"][0]["partitions"][0]["logStartOffset"] = 0
    return request | {"maxBytes": 10 << 20}, response


def commit(group: str, member: str, topic: str, offsets: Mapping[int, int]) -> tuple[Body, Body]:
    """A commit of these offsets by partition."""
    committed = [
        {"partitionIndex": partition, "committedOffset": offset, "committedMetadata": ""}
        for partition, offset in offsets.items()
    ]
    request: Body = {"groupId": group, "generationIdOrMemberEpoch": 1, "memberId": member}
    request |= {"groupInstanceId": None, "topics": [{"name": topic, "partitions": committed}]}
    answers = [{"partitionIndex": partition, "errorCode": 0} for partition in offsets]
    return request, {"topics": [{"name": topic, "partitions": answers}]}


def alter_quota(user: str, key: str, value: float) -> tuple[Body, Body]:
    """A client quota of a user."""
    entity = [{"entityType": "user", "entityName": user}]
    ops = [{"key": key, "value": value, "remove": False}]
    request = {"entries": [{"entity": entity, "ops": ops}], "validateOnly": False}
    return request, {"entries": [{"errorCode": 0, "errorMessage": None, "entity": entity}]}


def alter_config(kind: int, name: str, values: Mapping[str, str | None]) -> tuple[Body, Body]:
    """Configs of a topic (2) or a broker (4); None removes one."""
    configs = [
        {"name": key, "configOperation": int(value is None), "value": value}
        for key, value in values.items()
    ]
    resource = {"resourceType": kind, "resourceName": name}
    request = {"resources": [resource | {"configs": configs}], "validateOnly": False}
    return request, {"responses": [{"errorCode": 0, "errorMessage": None} | resource]}


def reassign(topic: str, replicas: Sequence[int]) -> tuple[Body, Body]:
    """A request that partition 0 be on these brokers."""
    placed = [{"partitionIndex": 0, "replicas": list(replicas)}]
    request: Body = {"timeoutMs": 30_000, "allowReplicationFactorChange": True}
    request["topics"] = [{"name": topic, "partitions": placed}]
    answered = [{"partitionIndex": 0, "errorCode": 0, "errorMessage": None}]
    response: Body = {"allowReplicationFactorChange": True, "errorCode": 0, "errorMessage": None}
    return request, response | {"responses": [{"name": topic, "partitions": answered}]}


def report_isr(topic_id: str, leader: int, in_sync: Sequence[int]) -> tuple[Body, Body]:
    """The replicas of partition 0 that its leader has found in sync."""
    isr = [{"brokerId": broker, "brokerEpoch": 1} for broker in in_sync]
    part: Body = {"partitionIndex": 0, "leaderEpoch": 0, "leaderRecoveryState": 0}
    altered = part | {"newIsrWithEpochs": isr, "partitionEpoch": 1}
    answered = part | {"errorCode": 0, "leaderId": leader, "isr": list(in_sync)}
    request: Body = {"brokerId": leader, "brokerEpoch": 1}
    request["topics"] = [{"topicId": topic_id, "partitions": [altered]}]
    topics = [{"topicId": topic_id, "partitions": [answered | {"partitionEpoch": 2}]}]
    return request, {"errorCode": 0, "topics": topics}


def streams_heartbeat(
    group: str, process: str, topic: str, partitions: Sequence[int]
) -> tuple[Body, Body]:
    """A heartbeat of a member of a Kafka Streams application (KIP-1071) that has these tasks."""
    source = {"subtopologyId": "0", "sourceTopics": [topic]}
    tasks = [{"subtopologyId": "0", "partitions": list(partitions)}]
    request: Body = {"groupId": group, "memberId": process, "memberEpoch": 1}
    request |= {"endpointInformationEpoch": 0, "rebalanceTimeoutMs": 300_000}
    request |= {"topology": {"epoch": 0, "subtopologies": [source]}, "processId": process}
    request |= {"activeTasks": tasks, "standbyTasks": [], "warmupTasks": []}
    response: Body = {"errorCode": 0, "memberId": process, "memberEpoch": 1}
    response |= {"heartbeatIntervalMs": 5_000, "activeTasks": tasks}
    return request, response | {"standbyTasks": [], "warmupTasks": []}
