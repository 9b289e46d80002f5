"""What arrives: APIs of the request log, and Kafka's small codes.

The values that are read of a line are in udfs/request_log/shape.py.
"""

MAX_TIME_MS = 1e9
"""Eleven days: no request takes as long, so sums of times remain numbers."""

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

PUSH, SUBSCRIPTIONS = "PUSH_TELEMETRY", "GET_TELEMETRY_SUBSCRIPTIONS"
TELEMETRY_APIS = (PUSH, SUBSCRIPTIONS)

HEADER_PREFIX = "kafka.header."
"""What a Collector's Kafka receiver puts before a record's header in a resource attribute."""

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
    "SYNC_GROUP",
    "HEARTBEAT",
    "LEAVE_GROUP",
    "CONSUMER_GROUP_HEARTBEAT",
    "STREAMS_GROUP_HEARTBEAT",
    "SHARE_GROUP_HEARTBEAT",
    "SHARE_FETCH",
    "SHARE_ACKNOWLEDGE",
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
    "DELETE_RECORDS",
    "CREATE_ACLS",
    "DELETE_ACLS",
    "DELETE_GROUPS",
    "OFFSET_DELETE",
    "ALTER_SHARE_GROUP_OFFSETS",
    "DELETE_SHARE_GROUP_OFFSETS",
    "ALTER_REPLICA_LOG_DIRS",
    "UNREGISTER_BROKER",
    "UPDATE_FEATURES",
)
"""APIs whose requests and responses are kept as JSON. Of others only header and times are kept.

Administrative requests are few, and the body alone says on what they were. Those of SASL, SCRAM
credentials and delegation tokens are not here, because their bodies hold secrets.
"""

# No rule needs every line of them: all others tell of sessions, ids, lags or who altered what.
SAMPLED_APIS = ("PRODUCE", "HEARTBEAT", "OFFSET_FETCH", "FIND_COORDINATOR")
