"""What clients push, and what their subscriptions request (KIP-714)."""

import pyarrow as pa

from quotaflow.schemas.columns import CLIENT, CLUSTER_ID, SOURCE, SOURCE_LINE, TAGS
from quotaflow.schemas.levels import TELEMETRY
from quotaflow.schemas.table import (
    BINARY,
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    Column,
    Table,
)

# Views join rows of both tables on these.
_CONTACT = (
    Column("event_time", TIMESTAMP, "when the broker answered, capped as in requests"),
    Column("broker_id", INT, "broker that answered"),
    Column("client_instance_id", STRING, "client instance id as Kafka prints a Uuid"),
    *CLIENT,
)
_ERROR_CODE = Column(
    "error_code", INT, "error the broker answered; null where the route cannot know"
)
_SUBSCRIPTION_ID = Column(
    "subscription_id", INT, "id of the metrics and interval of this instance's subscription"
)
_PUSH_INTERVAL = Column("push_interval_ms", INT, "push interval of the subscription")

TELEMETRY_PUSHES = Table(
    name="telemetry_pushes",
    comment="One row per PushTelemetry (KIP-714) with its payload, not decoded",
    columns=(
        CLUSTER_ID,
        *_CONTACT,
        Column("connection_id", STRING, "Kafka's connection id"),
        Column("accepted", BOOLEAN, "the broker took the push"),
        _ERROR_CODE,
        Column("terminating", BOOLEAN, "last push of this client instance"),
        Column("compression", STRING, "codec of the payload: none gzip snappy lz4 zstd, or id N"),
        _SUBSCRIPTION_ID,
        _PUSH_INTERVAL,
        Column("wire_bytes", LONG, "payload size on the wire"),
        Column("decoded_bytes", LONG, "payload size decompressed; null where unreadable"),
        Column(
            "payload_sha256", STRING, "of the decompressed payload: the same push on two routes"
        ),
        Column(
            "unreadable_reason", STRING, "why the payload could not be decoded; null when it can"
        ),
        Column(
            "unreadable_metrics",
            LONG,
            "metrics without points, because their text is not UTF-8; null where unreadable",
        ),
        Column("route", STRING, "request_log, receiver or otlp"),
        Column("payload", BINARY, "the payload, not decompressed"),
        *SOURCE,
        SOURCE_LINE,
    ),
    key=("cluster_id", "source_topic", "source_partition", "source_offset", "source_line"),
    time="event_time",
    clustering=("event_time", "client_instance_id"),
    area="telemetry",
    level=TELEMETRY,
)

TELEMETRY_SUBSCRIPTIONS = Table(
    name="telemetry_subscriptions",
    comment="One row per GetTelemetrySubscriptions answer (KIP-714)",
    columns=(
        CLUSTER_ID,
        *_CONTACT,
        Column("connection_id", STRING, "Kafka's connection id"),
        _ERROR_CODE,
        _SUBSCRIPTION_ID,
        Column(
            "expected_subscription_id",
            INT,
            "that id by Kafka's formula; another one was given by a broker that decides otherwise",
        ),
        Column("accepted_compression", pa.list_(STRING), "codecs the broker takes, best first"),
        _PUSH_INTERVAL,
        Column("telemetry_max_bytes", INT, "largest payload the broker takes"),
        Column("delta_temporality", BOOLEAN, "the subscription requests sums as deltas"),
        Column(
            "requested_metrics", pa.list_(STRING), "metric prefixes of the subscription; * is all"
        ),
        *SOURCE,
        SOURCE_LINE,
    ),
    key=("cluster_id", "source_topic", "source_partition", "source_offset", "source_line"),
    time="event_time",
    clustering=("event_time", "client_instance_id"),
    area="telemetry",
)

BUCKETS = pa.struct([pa.field("offset", INT), pa.field("bucket_counts", pa.list_(LONG))])
QUANTILE = pa.struct([pa.field("quantile", DOUBLE), pa.field("value", DOUBLE)])
EXEMPLAR = pa.struct(
    [
        pa.field("time", TIMESTAMP),
        pa.field("value", DOUBLE),
        pa.field("value_int", LONG),
        pa.field("span_id", STRING),
        pa.field("trace_id", STRING),
        pa.field("filtered_attributes", TAGS),
    ]
)

POINT = (
    Column("event_time", TIMESTAMP, "time of the data point, by the client's clock"),
    Column("start_time", TIMESTAMP, "start of the point's span; null where the client sent none"),
    Column("metric", STRING, "metric name as sent"),
    Column("kind", STRING, "gauge, sum, histogram, exponential_histogram or summary"),
    Column("value", DOUBLE, "number of a gauge or sum; NaN is the client's 'no samples'"),
    Column("value_int", LONG, "the same number, exact, where the client sent an integer"),
    Column("unit", STRING, "unit as sent, else as the catalogue knows it"),
    Column("in_catalogue", BOOLEAN, "the name is one that `quotaflow metrics` lists"),
    Column("temporality", STRING, "delta or cumulative, of sums and histograms"),
    Column("is_monotonic", BOOLEAN, "the sum never falls, by the client's word"),
    Column("flags", INT, "OTLP flags; bit 1 is no recorded value"),
    Column("histogram_count", LONG, "histograms and summaries: number of observations"),
    Column("histogram_sum", DOUBLE, "histograms and summaries: sum of observations"),
    Column("histogram_min", DOUBLE, "least observation, where sent"),
    Column("histogram_max", DOUBLE, "greatest observation, where sent"),
    Column("histogram_bounds", pa.list_(DOUBLE), "upper bounds of the buckets but the last"),
    Column("histogram_bucket_counts", pa.list_(LONG), "observations in each bucket"),
    Column("exponential_scale", INT, "base is 2 to the power of 2 to the minus scale"),
    Column("exponential_zero_count", LONG, "observations within the zero threshold"),
    Column("exponential_zero_threshold", DOUBLE, "width of the zero bucket"),
    Column("exponential_positive", BUCKETS, "buckets above zero"),
    Column("exponential_negative", BUCKETS, "buckets below zero"),
    Column("quantiles", pa.list_(QUANTILE), "summary: quantile 0 to 1 and its value"),
    Column("exemplars", pa.list_(EXEMPLAR), "sample observations with their trace"),
    Column("attributes", TAGS, "attributes of the point; nested values as JSON text"),
    Column("resource", TAGS, "attributes of the resource; nested values as JSON text"),
    Column("scope_name", STRING, "instrumentation scope"),
    Column("scope_version", STRING, "version of the instrumentation scope"),
)

CLIENT_METRICS = Table(
    name="client_metrics",
    question="Client metrics. What did clients push of themselves?",
    comment="One row per data point that clients pushed (KIP-714)",
    columns=(
        CLUSTER_ID,
        *POINT,
        Column(
            "series_id",
            LONG,
            "the series: hash of client instance (without one: resource), metric, kind, attributes",
        ),
        Column("client_instance_id", STRING, "client instance that pushed"),
        *CLIENT[:6],
        Column("listener", STRING, "listener the push came in on"),
        Column("broker_id", INT, "broker that took the push"),
        Column("accepted", BOOLEAN, "the broker took the push"),
        Column("topic", STRING, "topic attribute, as the client sent it"),
        Column(
            "is_topic_twin",
            BOOLEAN,
            "the push has the same point under a topic with '.' in place of '_': Java clients "
            "since 4.1 send both (KIP-1109), and only the topic with dots exists; null: no topic",
        ),
        Column("partition", INT, "partition attribute"),
        Column("node_id", INT, "broker id of node_id or node.id"),
        Column("node_kind", STRING, "what node_id names: broker, bootstrap or coordinator"),
        Column("group_id", STRING, "consumer group of the client"),
        Column("group_instance_id", STRING, "static member id of the client"),
        Column("member_id", STRING, "group member id; Java calls it group_member_id"),
        Column("transactional_id", STRING, "transactional id of the producer"),
        Column("application_id", STRING, "Kafka Streams application id"),
        Column("client_rack", STRING, "client.rack of the client"),
        Column("payload_sha256", STRING, "of the payload the point came in"),
        Column(
            "record_time", TIMESTAMP, "timestamp of the Kafka record, of the way in that came first"
        ),
    ),
    key=("cluster_id", "client_instance_id", "payload_sha256", "metric", "attributes"),
    time="event_time",
    clustering=("event_time", "metric"),
    area="telemetry",
    level=TELEMETRY,
)
