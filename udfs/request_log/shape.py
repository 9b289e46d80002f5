"""What is read of a request-log line: the path of each value in its JSON, and its cast.

Every value is read as text and cast once, here. DuckDB's own conversion of JSON would round 1.9 to
2 and take true for 1. Names are those of Kafka's RequestConvertToJson. One shape has the values of
all APIs, because names of PRODUCE, FETCH and the transactional APIs never clash.
"""

from collections.abc import Iterable, Mapping
from typing import Any

TEXT = "VARCHAR"

HEADER = {
    "api_key": ("int32", "r.requestHeader.requestApiKey"),
    "api_version": ("int32", "r.requestHeader.requestApiVersion"),
    "correlation_id": ("int32", "r.requestHeader.correlationId"),
    "error_code": ("int32", "r.response.errorCode"),
    "total_time_ms": ("number", "r.totalTimeMs"),
    "request_queue_time_ms": ("number", "r.requestQueueTimeMs"),
    "local_time_ms": ("number", "r.localTimeMs"),
    "remote_time_ms": ("number", "r.remoteTimeMs"),
    "throttle_time_ms": ("number", "r.throttleTimeMs"),
    "response_queue_time_ms": ("number", "r.responseQueueTimeMs"),
    "send_time_ms": ("number", "r.sendTimeMs"),
    "is_forwarded": ("flag", "r.isForwarded"),
    "stated_weight": ("int32", "weight"),
}
"""Values of every line: name -> cast (a macro of macros.sql) and path."""
TIMES = tuple(name for name in HEADER if name.endswith("_ms"))

FETCH = {
    "max_bytes": ("int64", "r.request.maxBytes"),
    "min_bytes": ("int64", "r.request.minBytes"),
    "max_wait_ms": ("int64", "r.request.maxWaitMs"),
    "isolation_level": ("int32", "r.request.isolationLevel"),
    "session_id": ("int64", "r.request.sessionId"),
    "session_epoch": ("int64", "r.request.sessionEpoch"),
    "response_session_id": ("int64", "r.response.sessionId"),
    "fetch_replica_id": ("int32", "r.request.replicaId"),
    "state_replica_id": ("int32", "r.request.replicaState.replicaId"),
}
"""Values of FETCH."""

PRODUCER = {
    "acks": ("int32", "r.request.acks"),
    "requested_id": ("int64", "r.request.producerId"),
    "requested_epoch": ("int32", "r.request.producerEpoch"),
    "v3_id": ("int64", "r.request.v3AndBelowProducerId"),
    "v3_epoch": ("int32", "r.request.v3AndBelowProducerEpoch"),
    "answered_id": ("int64", "r.response.producerId"),
    "answered_epoch": ("int32", "r.response.producerEpoch"),
}
"""Values of PRODUCE and of the APIs of producer ids and transactions."""

TELEMETRY = {
    "request_subscription_id": ("int32", "r.request.subscriptionId"),
    "terminating": ("flag", "r.request.terminating"),
    "compression_type": ("int32", "r.request.compressionType"),
    "response_subscription_id": ("int32", "r.response.subscriptionId"),
    "push_interval_ms": ("int32", "r.response.pushIntervalMs"),
    "telemetry_max_bytes": ("int32", "r.response.telemetryMaxBytes"),
    "delta_temporality": ("flag", "r.response.deltaTemporality"),
}
"""Values of PUSH_TELEMETRY and GET_TELEMETRY_SUBSCRIPTIONS (KIP-714)."""

NUMBERS = {**HEADER, **FETCH, **PRODUCER, **TELEMETRY}

TEXTS = {
    "api_name": "r.requestHeader.requestApiKeyName",
    "client_id": "r.requestHeader.clientId",
    "principal": "r.principal",
    "listener": "r.listener",
    "security_protocol": "r.securityProtocol",
    "connection_id": "r.connection",
    "client_software_name": "r.clientInformation.softwareName",
    "client_software_version": "r.clientInformation.softwareVersion",
    "rack": "r.request.rackId",
    "group_id": "r.request.groupId",
    "requested_transactional_id": "r.request.transactionalId",
    "v3_transactional_id": "r.request.v3AndBelowTransactionalId",
    "request_instance_id": "r.request.clientInstanceId",
    "metrics": "r.request.metrics",
    "response_instance_id": "r.response.clientInstanceId",
}

REQUESTED = {
    "FETCH": {
        "fetch_offset": ("int64", "fetchOffset"),
        "partition_max_bytes": ("int64", "partitionMaxBytes"),
        "requested_log_start": ("int64", "logStartOffset"),
    },
    "PRODUCE": {"requested_bytes": ("int32", "recordsSizeInBytes")},
}
"""Values of a partition in a request, by API."""
_ANSWERED = {
    "error_code": ("int32", "errorCode"),
    "log_start_offset": ("int64", "logStartOffset"),
}
ANSWERED = {
    "FETCH": _ANSWERED
    | {
        "high_watermark": ("int64", "highWatermark"),
        "last_stable_offset": ("int64", "lastStableOffset"),
        "preferred_read_replica": ("int32", "preferredReadReplica"),
        "answered_bytes": ("int32", "recordsSizeInBytes"),
    },
    "PRODUCE": _ANSWERED,
}
"""Values of a partition in a response, by API."""


def _fields(paths: Iterable[str]) -> dict[str, Any]:
    return dict.fromkeys(paths, TEXT)


def _topics(**partitions: Any) -> list[dict[str, Any]]:
    return [{"name": TEXT, "topic": TEXT, "topicId": TEXT, **partitions}]


def _values(by_api: Mapping[str, Mapping[str, tuple[str, str]]]) -> dict[str, Any]:
    return _fields(path for values in by_api.values() for _, path in values.values())


_REQUEST_PARTITION = [_fields(("partition", "index")) | _values(REQUESTED)]
_RESPONSE_PARTITION = [_fields(("partitionIndex", "index")) | _values(ANSWERED)]
_LISTS = {
    "r.request.topicData": _topics(partitionData=_REQUEST_PARTITION),
    "r.request.topics": _topics(partitions=_REQUEST_PARTITION),
    "r.request.forgottenTopicsData": _topics(partitions=[TEXT]),
    "r.response.responses": _topics(
        partitionResponses=_RESPONSE_PARTITION, partitions=_RESPONSE_PARTITION
    ),
    "r.response.acceptedCompressionTypes": [TEXT],
    "r.response.requestedMetrics": [TEXT],
}


def structure() -> dict[str, Any]:
    """All that is read, nested as in the JSON: the structure that json_transform takes."""
    whole: dict[str, Any] = {"ts": TEXT, "broker": TEXT}
    paths = [path for _, path in NUMBERS.values()]
    leaves = dict.fromkeys([*paths, *TEXTS.values()], TEXT) | _LISTS
    for path, shape in leaves.items():
        *parents, name = path.split(".")
        place = whole
        for parent in parents:
            place = place.setdefault(parent, {})
        place[name] = shape
    return whole
