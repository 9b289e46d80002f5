"""Tables of answers: each one is a rule's, computed from facts."""

from quotaflow.schemas.columns import CLIENT, CLUSTER_ID, EVENT_DATE, MINUTE, TAGS, TOPIC, TOPIC_ID
from quotaflow.schemas.table import (
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    Column,
    Table,
)

METRIC_ALERT_EVENTS = Table(
    name="metric_alert_events",
    comment=(
        "One row per event of an alert on client metrics (KIP-714): a reading past the bound of a "
        "rule of conf for longer than its hold time, by the client's clock"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
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
        Column("attributes", TAGS, "attributes of the point"),
        Column("client_instance_id", STRING, "client instance that pushed"),
        *CLIENT[:5],
        Column("broker_id", INT, "broker that took the push"),
    ),
    key=("cluster_id", "alert_id", "event_time"),
    time="event_time",
    partitioning=("event_date",),
)

TRAFFIC = Table(
    name="traffic",
    comment=(
        "Record bytes that clients produced and consumed, one row per minute, client, broker and "
        "topic; of what moved only, refused partitions and followers left out"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        MINUTE,
        Column("broker_id", INT, "broker that took or gave the bytes"),
        Column("principal", STRING, "principal, as Kafka prints it"),
        Column("client_id", STRING, "client.id as the client gave it: untrusted text"),
        Column("direction", STRING, "produced or consumed"),
        Column("topic", STRING, "topic, where the request named it"),
        Column("topic_id", STRING, "id of the topic, where the request named that instead"),
        Column("client_rack", STRING, "client.rack of a consumer that told it (KIP-392)"),
        Column("bytes", LONG, "record bytes, as compressed by the producer"),
    ),
    key=(
        "cluster_id",
        "event_time",
        "broker_id",
        "principal",
        "client_id",
        "direction",
        "topic",
        "topic_id",
        "client_rack",
    ),
    time="event_time",
    partitioning=("event_date",),
)

TOPIC_NAMES = Table(
    name="topic_names",
    comment=(
        "Which topic ids brokers told clients for which topics, one row per minute and id (view "
        "topic_ids): METADATA and CREATE_TOPICS name topics by both, also those that came and went "
        "between two snapshots"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        MINUTE,
        TOPIC_ID,
        TOPIC,
        Column(
            "requests",
            LONG,
            "requests that told it; where topic_id is null those whose topics are not known, since "
            "their body was capped",
        ),
    ),
    key=("cluster_id", "event_time", "topic_id"),
    time="event_time",
    partitioning=("event_date",),
)
