"""What arrives: the envelope, the request-log line, the receiver's headers, Kafka's small codes.

The shapes are Spark DDL text for from_json. A field whose meaning changes with the API's version
keeps Kafka's JSON names (RequestConvertToJson); one shape holds them all because the names of
PRODUCE, FETCH and the transactional APIs never clash.
"""

ENVELOPE_PATTERN = r'^\s*\{\s*"(?:ts|broker|r)"\s*:'
"""How a line in our envelope begins."""
STOCK_PATTERN = r"(?s)\A(?>.*?Completed request:(?=\{))(\{.*\})"
"""A line of Kafka's own layout, and the request in it; looked for once, where it begins first."""
YEAR_2100_MS = 4_102_444_800_000
"""Epoch milliseconds past which no time is one: Spark's reach further than Python's."""
MAX_TIME_MS = 1e9
"""Eleven days: no request takes as long, so that sums of what requests took stay numbers."""
TIMES = (
    *("totalTimeMs", "requestQueueTimeMs", "localTimeMs", "remoteTimeMs", "throttleTimeMs"),
    *("responseQueueTimeMs", "sendTimeMs"),
)
"""What a line tells of where its request spent its time."""

_REQUEST_PARTITION = (
    "STRUCT<`partition`: INT, `index`: INT, `fetchOffset`: BIGINT, `logStartOffset`: BIGINT, "
    "`partitionMaxBytes`: BIGINT, `recordsSizeInBytes`: INT>"
)
_RESPONSE_PARTITION = (
    "STRUCT<`partitionIndex`: INT, `index`: INT, `errorCode`: INT, `highWatermark`: BIGINT, "
    "`lastStableOffset`: BIGINT, `logStartOffset`: BIGINT, `preferredReadReplica`: INT, "
    "`recordsSizeInBytes`: INT>"
)


def _topics(partitions: str, shape: str) -> str:
    return (
        f"ARRAY<STRUCT<`name`: STRING, `topic`: STRING, `topicId`: STRING, {partitions}: {shape}>>"
    )


_REQUEST = f"""STRUCT<
    `transactionalId`: STRING, `acks`: INT, `producerId`: BIGINT, `producerEpoch`: INT,
    `v3AndBelowTransactionalId`: STRING, `v3AndBelowProducerId`: BIGINT,
    `v3AndBelowProducerEpoch`: INT, `groupId`: STRING,
    `topicData`: {_topics("`partitionData`", f"ARRAY<{_REQUEST_PARTITION}>")},
    `maxWaitMs`: BIGINT, `minBytes`: BIGINT, `maxBytes`: BIGINT, `isolationLevel`: INT,
    `sessionId`: BIGINT, `sessionEpoch`: BIGINT, `rackId`: STRING, `replicaId`: INT,
    `replicaState`: STRUCT<`replicaId`: INT>,
    `topics`: {_topics("`partitions`", f"ARRAY<{_REQUEST_PARTITION}>")},
    `forgottenTopicsData`: {_topics("`partitions`", "ARRAY<INT>")},
    `clientInstanceId`: STRING, `subscriptionId`: INT, `terminating`: BOOLEAN,
    `compressionType`: INT, `metrics`: STRING
>"""

_RESPONSE = f"""STRUCT<
    `errorCode`: INT, `sessionId`: BIGINT, `producerId`: BIGINT, `producerEpoch`: INT,
    `responses`: ARRAY<STRUCT<`name`: STRING, `topic`: STRING, `topicId`: STRING,
        `partitionResponses`: ARRAY<{_RESPONSE_PARTITION}>,
        `partitions`: ARRAY<{_RESPONSE_PARTITION}>>>,
    `clientInstanceId`: STRING, `subscriptionId`: INT, `acceptedCompressionTypes`: ARRAY<INT>,
    `pushIntervalMs`: INT, `telemetryMaxBytes`: INT, `deltaTemporality`: BOOLEAN,
    `requestedMetrics`: ARRAY<STRING>
>"""

_LINE = f"""STRUCT<
    `isForwarded`: BOOLEAN,
    `requestHeader`: STRUCT<`requestApiKey`: INT, `requestApiVersion`: INT, `correlationId`: INT,
        `clientId`: STRING, `requestApiKeyName`: STRING>,
    `request`: {_REQUEST},
    `response`: {_RESPONSE},
    `connection`: STRING, {", ".join(f"`{name}`: DOUBLE" for name in TIMES)},
    `securityProtocol`: STRING,
    `principal`: STRING, `listener`: STRING,
    `clientInformation`: STRUCT<`softwareName`: STRING, `softwareVersion`: STRING>
>"""

CORRUPT = "_corrupt"
WRAPPED = (
    f"`line` STRUCT<`ts`: BIGINT, `broker`: INT, `r`: {_LINE}>, `end` BOOLEAN, `{CORRUPT}` STRING"
)
"""An envelope as `line` of an object that ends in `end`: of two objects in a row Spark reads the
first and says nothing, and then `end` is missing."""
RAW_BODIES = "`r` STRUCT<`request`: STRING, `response`: STRING>"

NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"
RAFT_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
RAFT_APIS = (
    "VOTE",
    "BEGIN_QUORUM_EPOCH",
    "END_QUORUM_EPOCH",
    "DESCRIBE_QUORUM",
    "FETCH_SNAPSHOT",
    "UPDATE_RAFT_VOTER",
    "ADD_RAFT_VOTER",
    "REMOVE_RAFT_VOTER",
)

CHECKED_VERSIONS = {"PRODUCE": (3, 13), "FETCH": (4, 18)}
TYPED_APIS = ("PRODUCE", "FETCH", "PUSH_TELEMETRY")
BODY_APIS = (
    "INIT_PRODUCER_ID",
    "ADD_PARTITIONS_TO_TXN",
    "ADD_OFFSETS_TO_TXN",
    "TXN_OFFSET_COMMIT",
    "END_TXN",
    "METADATA",
    "DESCRIBE_TOPIC_PARTITIONS",
    "LIST_OFFSETS",
    "OFFSET_FOR_LEADER_EPOCH",
    "OFFSET_COMMIT",
    "JOIN_GROUP",
    "CONSUMER_GROUP_HEARTBEAT",
    "GET_TELEMETRY_SUBSCRIPTIONS",
    "ALTER_PARTITION",
    "ALTER_CONFIGS",
    "INCREMENTAL_ALTER_CONFIGS",
    "DESCRIBE_CONFIGS",
    "ALTER_CLIENT_QUOTAS",
    "DESCRIBE_CLIENT_QUOTAS",
    "ALTER_PARTITION_REASSIGNMENTS",
    "LIST_PARTITION_REASSIGNMENTS",
    "CREATE_TOPICS",
    "DELETE_TOPICS",
    "CREATE_PARTITIONS",
    "ELECT_LEADERS",
)

# No rule needs every line of them: all others tell of sessions, ids, lags or who altered what.
SAMPLED_APIS = ("PRODUCE", "HEARTBEAT", "OFFSET_FETCH", "FIND_COORDINATOR")

RECEIVER_HEADERS = (
    "client_instance_id",
    "terminating",
    "content_type",
    "principal",
    "client_id",
    "client_source_address",
    "client_source_port",
    "listener",
    "security_protocol",
    "request_version",
    "broker_id",
    "push_interval_ms",
    "client_software_name",
    "client_software_version",
    "connection_id",
)
