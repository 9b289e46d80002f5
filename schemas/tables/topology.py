"""Snapshots of a cluster's brokers, topics and replicas.

A row is current until the next one of its identity, which is its key without event_time. A row
with `is_removed` ends it.
"""

from quotaflow.schemas.columns import (
    CLUSTER_ID,
    PARTITION,
    SNAPSHOT_TIME,
    TOPIC,
    TOPIC_ID,
    is_removed,
)
from quotaflow.schemas.levels import ADMIN_API
from quotaflow.schemas.table import BOOLEAN, INT, LONG, STRING, Column, Table

BROKERS = Table(
    name="brokers",
    comment="One row per change of a broker, when a snapshot saw it (view broker_history)",
    columns=(
        CLUSTER_ID,
        SNAPSHOT_TIME,
        Column("broker_id", INT, "node id of the broker"),
        Column("host", STRING, "host of the listener that answered"),
        Column("port", INT, "port of that listener"),
        Column("rack", STRING, "broker.rack; null where it has none"),
        Column(
            "is_controller",
            BOOLEAN,
            "leads the metadata quorum, by DescribeQuorum; null where that was refused. With "
            "controllers apart from brokers none does",
        ),
        Column("is_fenced", BOOLEAN, "registered, but not taking requests; null before Kafka 4.0"),
        is_removed("the broker"),
    ),
    key=("cluster_id", "broker_id", "event_time"),
    time="event_time",
    clustering=("event_time", "broker_id"),
    area="cluster",
    level=ADMIN_API,
)

TOPICS = Table(
    name="topics",
    comment=(
        "One row per change of a topic, when a snapshot saw it (view topic_history). A topic made "
        "again under its name is another, with another topic_id"
    ),
    columns=(
        CLUSTER_ID,
        SNAPSHOT_TIME,
        TOPIC_ID,
        TOPIC,
        Column("partition_count", INT, "its partitions"),
        Column("is_internal", BOOLEAN, "a topic of Kafka's own, e.g. __consumer_offsets"),
        is_removed("the topic"),
    ),
    key=("cluster_id", "topic_id", "event_time"),
    time="event_time",
    clustering=("event_time", "topic"),
    area="cluster",
    level=ADMIN_API,
)

REPLICAS = Table(
    name="replicas",
    comment=(
        "One row per change of a replica of a partition, when a snapshot saw it (view "
        "replica_history)"
    ),
    columns=(
        CLUSTER_ID,
        SNAPSHOT_TIME,
        TOPIC_ID,
        TOPIC,
        PARTITION,
        Column("broker_id", INT, "broker the replica is assigned to"),
        Column("is_preferred", BOOLEAN, "first of the partition's replicas: its preferred leader"),
        Column("is_leader", BOOLEAN, "leads the partition"),
        Column("is_in_sync", BOOLEAN, "in the in-sync replica set"),
        Column("is_offline", BOOLEAN, "its broker or log dir is down"),
        is_removed("the replica"),
    ),
    key=("cluster_id", "topic_id", "partition", "broker_id", "event_time"),
    time="event_time",
    clustering=("event_time", "topic"),
    area="cluster",
    level=ADMIN_API,
)

REPLICA_SIZES = Table(
    name="replica_sizes",
    comment="One row per change of a replica's log, when a snapshot saw it (DescribeLogDirs)",
    columns=(
        CLUSTER_ID,
        SNAPSHOT_TIME,
        TOPIC,
        PARTITION,
        Column("broker_id", INT, "broker that has the replica"),
        Column("log_dir", STRING, "log dir it is in, as the broker names it"),
        Column("size_bytes", LONG, "size of its log segments"),
        Column(
            "offset_lag",
            LONG,
            "how far its log end is behind the high watermark; of a future replica, behind the "
            "current one",
        ),
        Column("is_future", BOOLEAN, "made by a move between log dirs, and not yet in use"),
        is_removed("the replica's log"),
    ),
    key=("cluster_id", "topic", "partition", "broker_id", "log_dir", "event_time"),
    time="event_time",
    clustering=("event_time", "topic"),
    area="cluster",
    level=ADMIN_API,
)

MOVING_REPLICAS = Table(
    name="moving_replicas",
    comment=(
        "One row per change of what ongoing reassignments add or remove, when a snapshot saw it "
        "(ListPartitionReassignments, KIP-455)"
    ),
    columns=(
        CLUSTER_ID,
        SNAPSHOT_TIME,
        TOPIC,
        PARTITION,
        Column("broker_id", INT, "broker that gets a replica, or that loses its own"),
        Column("role", STRING, "adding or removing"),
        is_removed("the replica's move: it is done, or was cancelled"),
    ),
    key=("cluster_id", "topic", "partition", "broker_id", "event_time"),
    time="event_time",
    clustering=("event_time", "topic"),
    empty="until a snapshot is taken while a reassignment goes on",
    area="cluster",
    level=ADMIN_API,
)
