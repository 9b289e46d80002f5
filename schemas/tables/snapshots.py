"""Snapshots of a cluster's clients and configs, by the Admin API.

All tables but `client_subscriptions` have changes. A row is current until the next one of its
identity, which is its key without event_time. A row with `is_removed` ends it.
"""

import pyarrow as pa

from quotaflow.schemas.columns import (
    CLIENT,
    CLUSTER_ID,
    PARTITION,
    PRODUCER_ID,
    SNAPSHOT_TIME,
    TOPIC,
    is_removed,
)
from quotaflow.schemas.levels import ADMIN_API
from quotaflow.schemas.table import BOOLEAN, DOUBLE, INT, LONG, STRING, TIMESTAMP, Column, Table

CONFIGS = Table(
    name="configs",
    comment=(
        "One row per change of a config, when a snapshot saw it. The newest row of a key is "
        "current (view current_configs)"
    ),
    columns=(
        CLUSTER_ID,
        SNAPSHOT_TIME,
        Column(
            "entity_type",
            STRING,
            "what it is a config of: client-metrics; topic (only what is set on the topic itself); "
            "broker (all it has, of any source)",
        ),
        Column("entity_name", STRING, "name of the entity; a broker's node id"),
        Column("config_key", STRING, "name of the config"),
        Column(
            "config_value", STRING, "its value; null once removed, where it is sensitive or unset"
        ),
        Column("config_source", STRING, "where the value comes from, by Kafka's ConfigSource"),
        Column("is_sensitive", BOOLEAN, "the broker keeps the value to itself"),
        is_removed("the config"),
    ),
    key=("cluster_id", "entity_type", "entity_name", "config_key", "event_time"),
    time="event_time",
    clustering=("event_time", "entity_name"),
    area="cluster",
    level=ADMIN_API,
)

CLIENT_QUOTAS = Table(
    name="client_quotas",
    comment=(
        "One row per change of a client quota, when a snapshot saw it. "
        "A part of the entity with a null name is its default if the flag beside it is true, and "
        "else not in the entity"
    ),
    columns=(
        CLUSTER_ID,
        SNAPSHOT_TIME,
        Column("user", STRING, "user the quota binds, a principal without User:"),
        Column("is_default_user", BOOLEAN, "binds users without a quota of their own"),
        Column("client_id", STRING, "client id the quota binds"),
        Column("is_default_client_id", BOOLEAN, "binds client ids without a quota of their own"),
        Column("ip", STRING, "address the quota binds"),
        Column("is_default_ip", BOOLEAN, "binds addresses without a quota of their own"),
        Column(
            "config_key",
            STRING,
            "producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate "
            "or connection_creation_rate",
        ),
        Column(
            "quota",
            DOUBLE,
            "bytes per second, percent of a thread, mutations or connections per second, as "
            "config_key has it; null once removed",
        ),
        Column(
            "set_at",
            TIMESTAMP,
            "when this value was set or removed, where the request log saw it since the snapshot "
            "before",
        ),
        Column("set_by", STRING, "principal that did so"),
        is_removed("the quota"),
    ),
    key=(
        "cluster_id",
        "user",
        "is_default_user",
        "client_id",
        "is_default_client_id",
        "ip",
        "is_default_ip",
        "config_key",
        "event_time",
    ),
    time="event_time",
    clustering=("event_time", "user"),
    area="cluster",
    level=ADMIN_API,
)

ACTIVE_PRODUCERS = Table(
    name="active_producers",
    comment=(
        "One row per change of what a partition's leader knows of a producer id, when a snapshot "
        "saw it (DescribeProducers)"
    ),
    columns=(
        CLUSTER_ID,
        SNAPSHOT_TIME,
        Column("broker_id", INT, "leader that answered"),
        TOPIC,
        PARTITION,
        PRODUCER_ID,
        Column("producer_epoch", INT, "epoch of producer_id"),
        Column("last_sequence", INT, "sequence number of its last batch; null without one"),
        Column("last_timestamp", TIMESTAMP, "timestamp of its last batch; null without one"),
        Column("coordinator_epoch", INT, "epoch of the transaction coordinator; null without one"),
        Column(
            "current_transaction_start_offset",
            LONG,
            "first offset of its open transaction; null without one",
        ),
        is_removed("the producer id"),
    ),
    key=("cluster_id", "broker_id", "topic", "partition", "producer_id", "event_time"),
    time="event_time",
    clustering=("event_time", "producer_id"),
    area="cluster",
    level=ADMIN_API,
)

TRANSACTIONAL_IDS = Table(
    name="transactional_ids",
    comment=("One row per change of a transactional id, when a snapshot saw it (ListTransactions)"),
    columns=(
        CLUSTER_ID,
        SNAPSHOT_TIME,
        Column("transactional_id", STRING, "transactional.id as the client gave it"),
        PRODUCER_ID,
        Column("broker_id", INT, "its transaction coordinator"),
        Column("transaction_state", STRING, "as the coordinator names it, e.g. Ongoing"),
        is_removed("the transactional id"),
    ),
    key=("cluster_id", "transactional_id", "event_time"),
    time="event_time",
    clustering=("event_time", "transactional_id"),
    area="cluster",
    level=ADMIN_API,
)

CLIENT_SUBSCRIPTIONS = Table(
    name="client_subscriptions",
    comment=(
        "One row per client instance that requested its subscription within a day of the last "
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
            "as_predicted; pending: answered before the resources changed, and not since; "
            "differs: a broker decided otherwise",
        ),
    ),
    key=("cluster_id", "client_instance_id"),
    time="event_time",
    clustering=("event_time", "client_instance_id"),
    area="telemetry",
)

SETTINGS = Table(
    name="settings",
    comment=(
        "One row per change of a value of conf that views compute with, when a snapshot saw it "
        "(view current_settings)"
    ),
    columns=(
        CLUSTER_ID,
        Column("event_time", TIMESTAMP, "when the snapshot was taken"),
        Column("setting", STRING, "key in conf, such as prices.currency"),
        Column("setting_value", STRING, "its value, as text"),
        is_removed("the setting"),
    ),
    key=("cluster_id", "setting", "event_time"),
    time="event_time",
    clustering=("event_time", "setting"),
    area="cluster",
    level=ADMIN_API,
)
