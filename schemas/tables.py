"""Every Delta table of quotaflow, once: name, meaning, columns with units, key and layout."""

import pyarrow as pa

from quotaflow.schemas.table import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    Column,
    Table,
)

_TAGS = pa.map_(STRING, STRING)

CLUSTER_ID = Column("cluster_id", STRING, "Kafka cluster id, as conf or the broker gives it")

SOURCE = (
    Column("source_topic", STRING, "Kafka topic the row was read from"),
    Column("source_partition", INT, "partition of source_topic"),
    Column("source_offset", LONG, "offset in source_partition; one row per offset"),
    Column("record_time", TIMESTAMP, "timestamp of the Kafka record: when it was shipped"),
)

CLIENT = (
    Column("principal", STRING, "authenticated principal as Kafka prints it, e.g. User:alice"),
    Column("client_id", STRING, "client.id as the client gave it: untrusted text"),
    Column("client_software_name", STRING, "client library (KIP-511), unknown before it said so"),
    Column("client_software_version", STRING, "version of the client library (KIP-511)"),
    Column("client_address", STRING, "address the client connected from"),
    Column("client_port", INT, "port the client connected from"),
    Column("listener", STRING, "listener the request came in on"),
    Column("security_protocol", STRING, "security protocol of that listener"),
)

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
            "total_time_ms", DOUBLE, "from receive to sent; the request began this much earlier"
        ),
        Column("request_queue_time_ms", DOUBLE, "waiting for an IO thread"),
        Column("local_time_ms", DOUBLE, "processing on the broker itself"),
        Column("remote_time_ms", DOUBLE, "waiting for others: replication, long poll"),
        Column("throttle_time_ms", DOUBLE, "throttle time told to the client"),
        Column("response_queue_time_ms", DOUBLE, "waiting for a network thread"),
        Column("send_time_ms", DOUBLE, "writing the response to the socket"),
        Column("max_bytes", LONG, "FETCH: limit on the whole response (KIP-74)"),
        Column("min_bytes", LONG, "FETCH: least bytes to wait for"),
        Column("max_wait_ms", LONG, "FETCH: longest wait for min_bytes"),
        Column("isolation_level", INT, "FETCH: 0 read uncommitted, 1 read committed"),
        Column("acks", INT, "PRODUCE: -1 all in-sync replicas, 0 none, 1 leader"),
        Column("session_id", LONG, "FETCH: session named in the request (KIP-227), 0 none"),
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
    ),
    key=("cluster_id", "source_topic", "source_partition", "source_offset"),
    time="event_time",
    clustering=("event_time", "principal"),
)

# Views join rows of both tables on these, and DataFusion wants equal comments for that.
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
    "subscription_id", INT, "id of the metrics set and interval asked of this instance"
)
_PUSH_INTERVAL = Column("push_interval_ms", INT, "interval the client is asked to push at")

TELEMETRY_PUSHES = Table(
    name="telemetry_pushes",
    comment="One row per PushTelemetry (KIP-714) with its payload as it came",
    columns=(
        CLUSTER_ID,
        *_CONTACT,
        Column("connection_id", STRING, "Kafka's connection id"),
        Column("accepted", BOOLEAN, "the broker took the push"),
        _ERROR_CODE,
        Column("terminating", BOOLEAN, "last push of this client instance"),
        Column("compression", STRING, "codec the client named: none gzip snappy lz4 zstd, or id N"),
        _SUBSCRIPTION_ID,
        _PUSH_INTERVAL,
        Column("wire_bytes", LONG, "payload size as it came"),
        Column("decoded_bytes", LONG, "payload size decompressed; null where unreadable"),
        Column(
            "payload_sha256", STRING, "of the decompressed payload: the same push on two routes"
        ),
        Column(
            "unreadable_reason", STRING, "why the payload could not be decoded; null when it can"
        ),
        Column("route", STRING, "request_log, receiver or otlp"),
        Column("payload", BINARY, "the payload as it came, compressed or not"),
        *SOURCE,
    ),
    key=("cluster_id", "source_topic", "source_partition", "source_offset"),
    time="event_time",
    clustering=("event_time", "client_instance_id"),
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
        Column("delta_temporality", BOOLEAN, "sums are asked for as deltas"),
        Column("requested_metrics", pa.list_(STRING), "metric prefixes asked for; * is all"),
        *SOURCE,
    ),
    key=("cluster_id", "source_topic", "source_partition", "source_offset"),
    time="event_time",
    clustering=("event_time", "client_instance_id"),
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
        pa.field("filtered_attributes", _TAGS),
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
    Column("is_monotonic", BOOLEAN, "the sum never falls, says the client"),
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
    Column("attributes", _TAGS, "attributes of the point; nested values as JSON text"),
    Column("resource", _TAGS, "attributes of the resource; nested values as JSON text"),
    Column("scope_name", STRING, "instrumentation scope"),
    Column("scope_version", STRING, "version of the instrumentation scope"),
)

CLIENT_METRICS = Table(
    name="client_metrics",
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
        Column("topic", STRING, "topic attribute, as the client named it"),
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
)

QUARANTINE = Table(
    name="quarantine",
    comment="One row per record or payload that could not be read, with the reason",
    columns=(
        CLUSTER_ID,
        Column("event_time", TIMESTAMP, "time of the Kafka record"),
        Column("target", STRING, "table the row was meant for"),
        Column("reason", STRING, "why it could not be read: a code"),
        Column("detail", STRING, "what was seen, bounded"),
        Column("size_bytes", LONG, "size of the record's value"),
        Column("head", BINARY, "the first 4 KiB of the value; null where it may hold credentials"),
        *SOURCE,
    ),
    key=("cluster_id", "target", "source_topic", "source_partition", "source_offset"),
    time="event_time",
    clustering=("event_time", "reason"),
)

PIPELINE_PROGRESS = Table(
    name="pipeline_progress",
    comment="Rows in, out and left out, by query and micro-batch: nothing is dropped silently",
    columns=(
        CLUSTER_ID,
        Column("event_time", TIMESTAMP, "greatest record or event time in the batch"),
        Column("job", STRING, "job that ran the batch"),
        Column("query_id", STRING, "id of the streaming query, from its checkpoint"),
        Column("batch_id", LONG, "number of the micro-batch"),
        Column("target", STRING, "table the rows went to; null for rows left out"),
        Column("outcome", STRING, "in, out, left_out, quarantined or late"),
        Column("reason", STRING, "why rows were left out, quarantined or late"),
        Column("row_count", LONG, "rows"),
    ),
    key=("query_id", "batch_id", "target", "outcome", "reason"),
    time="event_time",
    clustering=("event_time", "job"),
)

PRODUCER_ID_RATES = Table(
    name="producer_id_rates",
    comment=(
        "New producer ids per principal, broker and second (KIP-936). Open loop: nobody was "
        "throttled. Aligned time: the broker's own figures may differ by one sample"
    ),
    columns=(
        CLUSTER_ID,
        Column("event_date", DATE, "UTC date of event_time"),
        Column("event_time", TIMESTAMP, "start of the aligned second"),
        Column("broker_id", INT, "broker that counted: the one that answered INIT_PRODUCER_ID"),
        Column("principal", STRING, "principal, as Kafka prints it"),
        Column("kind", STRING, "allocation: ids handed out; activation: ids seen active"),
        Column("sightings", LONG, "producer ids seen in this second, repeats included"),
        Column("new_ids", LONG, "ids the timed Bloom filter had not seen"),
        Column("new_ids_exact", LONG, "ids new by exact count, beside the filter's"),
        Column("rate_per_s", DOUBLE, "new_ids over the aligned windows ending here / their span"),
        Column("tokens", DOUBLE, "token bucket: quota x windows x size at most; may be negative"),
        Column("quota_per_s", DOUBLE, "producer_ids_rate this principal is held to, from conf"),
        Column("throttle_time_ms", LONG, "-tokens / quota in ms, 0 while tokens are left"),
        Column("is_violating", BOOLEAN, "tokens below zero"),
    ),
    key=("cluster_id", "event_time", "broker_id", "principal", "kind"),
    time="event_time",
    partitioning=("event_date",),
)

METRIC_ALERT_EVENTS = Table(
    name="metric_alert_events",
    comment=(
        "One row per event of an alert on client metrics (KIP-714): a reading past the bound of a "
        "rule of conf for longer than its hold time, by the client's clock"
    ),
    columns=(
        CLUSTER_ID,
        Column("event_date", DATE, "UTC date of event_time"),
        Column(
            "event_time",
            TIMESTAMP,
            "when it happened, by the client's clock; a stale close is told ahead of its time, "
            "and taken back by a reading that comes before it",
        ),
        Column("alert_id", STRING, "hash of cluster, rule, series and first_breach"),
        Column("rule", STRING, "name of the rule in conf"),
        Column("state", STRING, "opened, standing (once an hour while open) or closed"),
        Column("reason", STRING, "why it was closed: cleared, or stale (no reading for stale_s)"),
        Column("first_breach", TIMESTAMP, "first reading past the bound"),
        Column("bound", DOUBLE, "bound of the rule"),
        Column("value", DOUBLE, "last reading by then, in the metric's unit"),
        Column("peak_value", DOUBLE, "worst reading since first_breach"),
        Column("points", LONG, "readings since first_breach"),
        Column("ask_metrics", STRING, "prefixes the rule asks for while it is open; null: none"),
        Column("ask_interval_ms", INT, "how often, in ms"),
        Column("series_id", LONG, "series of client_metrics"),
        Column("metric", STRING, "metric name as sent"),
        Column("unit", STRING, "unit as sent, else as the catalogue knows it"),
        Column("attributes", _TAGS, "attributes of the point"),
        Column("client_instance_id", STRING, "client instance that pushed"),
        *CLIENT[:5],
        Column("broker_id", INT, "broker that took the push"),
    ),
    key=("cluster_id", "alert_id", "event_time"),
    time="event_time",
    partitioning=("event_date",),
)

CONFIGS = Table(
    name="configs",
    comment=(
        "One row per change of a dynamic config, when a snapshot saw it. The newest row of a key "
        "stands (view current_configs)"
    ),
    columns=(
        CLUSTER_ID,
        Column("event_time", TIMESTAMP, "when the snapshot was taken"),
        Column("entity_type", STRING, "what it is a config of, as kafka-configs says it"),
        Column("entity_name", STRING, "name of the entity"),
        Column("config_key", STRING, "name of the config"),
        Column("config_value", STRING, "its value; null once removed"),
        Column("config_source", STRING, "where the value comes from, by Kafka's ConfigSource"),
        Column("is_removed", BOOLEAN, "the config is gone since the snapshot before"),
    ),
    key=("cluster_id", "entity_type", "entity_name", "config_key", "event_time"),
    time="event_time",
    clustering=("event_time", "entity_name"),
)

CLIENT_SUBSCRIPTIONS = Table(
    name="client_subscriptions",
    comment=(
        "One row per client instance that asked for its subscription within a day of the last "
        "snapshot: what the configured client-metrics resources give it, beside what it got"
    ),
    columns=(
        CLUSTER_ID,
        Column("event_time", TIMESTAMP, "when the instance was answered last"),
        Column("snapshot_time", TIMESTAMP, "when the resources were read"),
        Column("client_instance_id", STRING, "client instance id as Kafka prints a Uuid"),
        *CLIENT[:6],
        Column("subscriptions", pa.list_(STRING), "names of the resources that match it"),
        Column("predicted_metrics", pa.list_(STRING), "union of their prefixes, sorted"),
        Column("predicted_interval_ms", INT, "least of their intervals and Kafka's default"),
        Column("delivered_metrics", pa.list_(STRING), "prefixes it was answered, sorted"),
        Column("delivered_interval_ms", INT, "interval it was answered"),
        Column(
            "state",
            STRING,
            "as_predicted; pending: answered before the resources changed, and not asked since; "
            "differs: a broker decided otherwise",
        ),
    ),
    key=("cluster_id", "client_instance_id"),
    time="event_time",
    clustering=("event_time", "client_instance_id"),
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        REQUESTS,
        TELEMETRY_PUSHES,
        TELEMETRY_SUBSCRIPTIONS,
        CLIENT_METRICS,
        PRODUCER_ID_RATES,
        METRIC_ALERT_EVENTS,
        CONFIGS,
        CLIENT_SUBSCRIPTIONS,
        QUARANTINE,
        PIPELINE_PROGRESS,
    )
}
