"""Tables of what a cluster says of itself when it is asked."""

import pyarrow as pa

from quotaflow.schemas.columns import CLIENT, CLUSTER_ID
from quotaflow.schemas.table import BOOLEAN, INT, STRING, TIMESTAMP, Column, Table

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
