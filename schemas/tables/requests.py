"""`requests`: what brokers logged of the requests they completed."""

import pyarrow as pa

from quotaflow.schemas.columns import CLIENT, CLUSTER_ID, SOURCE, SOURCE_LINE
from quotaflow.schemas.table import BOOLEAN, DOUBLE, INT, LONG, STRING, TIMESTAMP, Column, Table

PARTITION = pa.struct(
    [
        pa.field("topic", STRING),
        pa.field("topic_id", STRING),
        pa.field("partition", INT),
        pa.field("in_request", BOOLEAN),
        pa.field("in_response", BOOLEAN),
        pa.field("fetch_offset", LONG),
        pa.field("partition_max_bytes", LONG),
        pa.field("high_watermark", LONG),
        pa.field("last_stable_offset", LONG),
        pa.field("log_start_offset", LONG),
        pa.field("follower_log_start_offset", LONG),
        pa.field("preferred_read_replica", INT),
        pa.field("bytes", LONG),
        pa.field("error_code", INT),
    ]
)

FORGOTTEN = pa.struct(
    [pa.field("topic", STRING), pa.field("topic_id", STRING), pa.field("partition", INT)]
)

REQUESTS = Table(
    name="requests",
    question="Requests. What did each request ask of which broker, and how long did it take?",
    comment="One row per request a broker completed, from kafka.request.logger",
    columns=(
        CLUSTER_ID,
        Column(
            "event_time",
            TIMESTAMP,
            "when the broker completed the request, by its own clock, "
            "capped at record_time plus conf's max_clock_skew",
        ),
        Column("broker_id", INT, "node id of the broker that wrote the line"),
        Column("api", STRING, "name of the API, e.g. FETCH"),
        Column("api_version", INT, "version of the request"),
        Column("correlation_id", INT, "correlation id of the request on its connection"),
        *CLIENT,
        Column("connection_id", STRING, "Kafka's connection id: local-remote-processor-index"),
        Column("error_code", INT, "top-level error code of the response, where the API has one"),
        Column(
            "total_time_ms", DOUBLE, "from receive to sent; the request started this much earlier"
        ),
        Column("request_queue_time_ms", DOUBLE, "waiting for an IO thread"),
        Column("local_time_ms", DOUBLE, "processing on the broker itself"),
        Column("remote_time_ms", DOUBLE, "waiting for others: replication, long poll"),
        Column("throttle_time_ms", DOUBLE, "throttle time in the answer"),
        Column("response_queue_time_ms", DOUBLE, "waiting for a network thread"),
        Column("send_time_ms", DOUBLE, "writing the response to the socket"),
        Column("max_bytes", LONG, "FETCH: limit on the whole response (KIP-74)"),
        Column("min_bytes", LONG, "FETCH: least bytes to wait for"),
        Column("max_wait_ms", LONG, "FETCH: longest wait for min_bytes"),
        Column("isolation_level", INT, "FETCH: 0 read uncommitted, 1 read committed"),
        Column("acks", INT, "PRODUCE: -1 all in-sync replicas, 0 none, 1 leader"),
        Column("session_id", LONG, "FETCH: session of the request (KIP-227), 0 none"),
        Column("session_epoch", LONG, "FETCH: session epoch, 0 begins one, -1 ends it"),
        Column("response_session_id", LONG, "FETCH: session the broker answered with"),
        Column("rack_id", STRING, "FETCH: client.rack of the consumer (KIP-392)"),
        Column("replica_id", INT, "FETCH: node id of a follower; null for consumers"),
        Column("group_id", STRING, "consumer group, where the API names one"),
        Column("transactional_id", STRING, "transactional id, where the API names one"),
        Column("producer_id", LONG, "producer id answered or used; null where there is none"),
        Column("producer_epoch", INT, "epoch of producer_id"),
        Column("forgotten", pa.list_(FORGOTTEN), "FETCH: partitions taken out of the session"),
        Column(
            "partitions",
            pa.list_(PARTITION),
            "PRODUCE and FETCH: partitions in request order, then those only in the response",
        ),
        Column(
            "body",
            STRING,
            "other allow-listed APIs: JSON of request and response, secrets removed, capped",
        ),
        *SOURCE,
        Column(
            "weight",
            DOUBLE,
            "requests that this row counts as: n where the broker's appender or ingest "
            "(ingest.sampling) kept one of n, n times m where both did, else 1; "
            "null, which is 1, in rows of before there was sampling",
        ),
        SOURCE_LINE,
    ),
    key=("cluster_id", "source_topic", "source_partition", "source_offset", "source_line"),
    time="event_time",
    clustering=("event_time", "principal"),
    area="requests",
)
