"""Tables of answers: each one is a rule's, computed from facts."""

from quotaflow.schemas.columns import CLIENT, CLUSTER_ID, TAGS
from quotaflow.schemas.table import (
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
        Column(
            "broker_id",
            INT,
            "broker that counted: the one that answered; for activations the partition's leader",
        ),
        Column(
            "principal",
            STRING,
            "principal, as Kafka prints it; null for activations of ids of unknown owner",
        ),
        Column(
            "kind",
            STRING,
            "allocation: ids handed out or used in transactions, by the second; activation: ids a "
            "leader held for the first time, by the snapshot. Never to be added up",
        ),
        Column("sightings", LONG, "producer ids seen in this second, repeats included"),
        Column("new_ids", LONG, "ids the timed Bloom filter had not seen"),
        Column("new_ids_exact", LONG, "ids new by exact count, beside the filter's"),
        Column(
            "rate_per_s",
            DOUBLE,
            "new_ids over the aligned windows ending here / their span; for activations, over the "
            "time since the snapshot before, null at the first",
        ),
        Column(
            "tokens",
            DOUBLE,
            "token bucket: quota x windows x size at most; may be negative; null for activations",
        ),
        Column("quota_per_s", DOUBLE, "producer_ids_rate this principal is held to, from conf"),
        Column(
            "throttle_time_ms",
            LONG,
            "-tokens / quota in ms, 0 while tokens are left; null for activations",
        ),
        Column(
            "throttle_time_avg_ms",
            DOUBLE,
            "mean of the throttle times told over the windows ending here, one for each second "
            "with new ids over the quota; 0 where none was told (the KIP's throttle-time)",
        ),
        Column("is_violating", BOOLEAN, "tokens below zero; for activations, rate over quota"),
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
        Column("event_date", DATE, "UTC date of event_time"),
        Column("event_time", TIMESTAMP, "start of the minute"),
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
