"""Fetches: what each requested and returned, and their sessions (KIP-227)."""

import pyarrow as pa

from quotaflow.schemas.columns import CLIENT, CLUSTER_ID, SOURCE, SOURCE_LINE
from quotaflow.schemas.table import DOUBLE, INT, LONG, STRING, TIMESTAMP, Column, Table

_NAME = [pa.field("topic", STRING), pa.field("topic_id", STRING), pa.field("partition", INT)]

FETCHED_PARTITION = pa.struct(
    [
        *_NAME,
        pa.field("fetch_offset", LONG),
        pa.field("partition_max_bytes", LONG),
        pa.field("high_watermark", LONG),
        pa.field("last_stable_offset", LONG),
        pa.field("log_start_offset", LONG),
        pa.field("follower_log_start_offset", LONG),
        pa.field("preferred_read_replica", INT),
        pa.field("bytes", LONG),
        pa.field("error_code", INT),
        # Last, where a migration adds it.
        pa.field("request_index", INT),
    ]
)
STARVED_PARTITION = pa.struct(_NAME)
CACHED_PARTITION = pa.struct(
    [
        *_NAME,
        pa.field("fetch_offset", LONG),
        pa.field("partition_max_bytes", LONG),
        pa.field("end_offset", LONG),
    ]
)

_SESSION = Column("session_id", LONG, "session that it started or continued (KIP-227), 0 none")
_REPLICA = Column("replica_id", INT, "node id of a follower; null for consumers")

FETCHES = Table(
    name="fetches",
    comment="One row per FETCH answered, with the partitions that its session requests (KIP-227)",
    columns=(
        CLUSTER_ID,
        Column("event_time", TIMESTAMP, "when the broker completed the fetch, by its own clock"),
        Column("broker_id", INT, "node id of the broker that was fetched from"),
        *CLIENT,
        Column("api_version", INT, "version of the request"),
        _REPLICA,
        Column("rack_id", STRING, "client.rack of the consumer (KIP-392)"),
        Column("connection_id", STRING, "Kafka's connection id: local-remote-processor-index"),
        _SESSION,
        Column("session_epoch", LONG, "epoch of the request: 0 starts a session, -1 no session"),
        Column(
            "session_state",
            STRING,
            "full: the request names all its partitions; known: its session has the rest; "
            "unknown: the session is older than the log, or was idle too long; "
            "out_of_order: an epoch is missing, or the line came twice; "
            "refused: by a top-level error",
        ),
        Column("session_partitions", INT, "partitions requested; null: not known"),
        Column(
            "session_max_bytes",
            LONG,
            "sum of partition_max_bytes over all partitions requested; null: not known",
        ),
        Column(
            "session_partition_max_bytes",
            LONG,
            "greatest partition_max_bytes of all partitions requested; null: not known",
        ),
        Column("max_bytes", LONG, "limit on the whole response (KIP-74)"),
        Column("min_bytes", LONG, "least bytes to wait for"),
        Column("max_wait_ms", LONG, "longest wait for min_bytes"),
        Column("isolation_level", INT, "0 read uncommitted, 1 read committed"),
        Column(
            "total_time_ms",
            DOUBLE,
            "from receive to sent; the fetch started this much before event_time",
        ),
        Column("local_time_ms", DOUBLE, "processing on the broker itself"),
        Column("remote_time_ms", DOUBLE, "waiting for min_bytes or max_wait_ms"),
        Column("throttle_time_ms", DOUBLE, "throttle time in the answer"),
        Column("error_code", INT, "top-level error code of the response"),
        Column("response_bytes", LONG, "bytes of records of all partitions answered"),
        Column(
            "partitions",
            pa.list_(FETCHED_PARTITION),
            "partitions answered. request_index: 0-based place among the partitions requested, in "
            "the order the broker read them; request_index, fetch_offset and partition_max_bytes "
            "are null where not known. "
            "follower_log_start_offset: that of the follower, where its request has it",
        ),
        Column(
            "starved",
            pa.list_(STARVED_PARTITION),
            "partitions known to have had more to read, of which an answer that reached max_bytes "
            "returned nothing; null: the requested partitions are not known",
        ),
        *SOURCE,
        SOURCE_LINE,
    ),
    key=("cluster_id", "source_topic", "source_partition", "source_offset", "source_line"),
    time="event_time",
    clustering=("event_time", "principal"),
    area="requests",
)

FETCH_SESSIONS = Table(
    name="fetch_sessions",
    comment="One row per fetch session in use (KIP-227), as it is after the newest fetch read",
    columns=(
        CLUSTER_ID,
        Column("event_time", TIMESTAMP, "time of its newest fetch"),
        Column("broker_id", INT, "node id of the broker that caches it"),
        _SESSION,
        Column("principal", STRING, "authenticated principal of its newest fetch"),
        Column("client_id", STRING, "client.id of its newest fetch: untrusted text"),
        _REPLICA,
        Column("start_time", TIMESTAMP, "when it started"),
        Column("next_epoch", LONG, "epoch that its next fetch must name"),
        Column(
            "cached_partitions",
            pa.list_(CACHED_PARTITION),
            "its partitions in the order the broker reads them next; end_offset: the high "
            "watermark of the last answer (read committed: last stable offset), -1 none. "
            "Null where an epoch was missed",
        ),
    ),
    key=("cluster_id", "broker_id", "session_id"),
    time="event_time",
    clustering=("event_time",),
    area="requests",
)
