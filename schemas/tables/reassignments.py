"""Replicas that move: who requested it, which joined, and how far behind they are."""

from quotaflow.schemas.columns import (
    CLIENT,
    CLUSTER_ID,
    EVENT_DATE,
    NAMED_TOPIC,
    NAMED_TOPIC_ID,
    PARTITION,
)
from quotaflow.schemas.table import INT, LONG, STRING, TIMESTAMP, Column, Table

LAG_PERIOD_S = 10
"""Seconds of a row of `replica_lag`."""

REASSIGNMENT_CHANGES = Table(
    name="reassignment_changes",
    comment=(
        "Where requests place replicas (ALTER_PARTITION_REASSIGNMENTS) and which of them "
        "are in sync (ALTER_PARTITION), one row per request, partition and replica"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        Column("event_time", TIMESTAMP, "when the broker completed the request"),
        Column("broker_id", INT, "broker or controller that answered"),
        Column(
            "change",
            STRING,
            "requested: the partition is to have this replica; cancelled: its move is to stop; "
            "in_sync: the leader requests this replica in the ISR; capped: a request too long "
            "to be read here",
        ),
        NAMED_TOPIC_ID,
        NAMED_TOPIC,
        PARTITION,
        Column("replica_id", INT, "broker that is to have a replica, or that is in sync"),
        Column("place", INT, "of a requested replica: 0 the preferred leader; null else"),
        Column(
            "error_code",
            INT,
            "answer for the partition: 0 done; 108 done, and it has another leader now",
        ),
        *CLIENT[:2],
    ),
    key=(
        "cluster_id",
        "event_time",
        "broker_id",
        "change",
        "topic_id",
        "topic",
        "partition",
        "replica_id",
    ),
    time="event_time",
    partitioning=("event_date",),
    area="replication",
)

REPLICA_LAG = Table(
    name="replica_lag",
    comment=(
        "How far followers that are behind are behind their leaders, one row per ten seconds, "
        "leader, follower and partition in which it fetched; none of followers that are not"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        Column("event_time", TIMESTAMP, "start of the ten seconds"),
        Column("broker_id", INT, "leader that was fetched from"),
        Column("replica_id", INT, "follower that fetched"),
        NAMED_TOPIC_ID,
        NAMED_TOPIC,
        PARTITION,
        Column("fetches", LONG, "answers with the partition"),
        Column("bytes", LONG, "record bytes that came"),
        Column("first_offset", LONG, "log end offset of the follower at the first of them"),
        Column("last_offset", LONG, "log end offset of the follower at the last of them"),
        Column("last_time", TIMESTAMP, "time of the last of them"),
        Column("high_watermark", LONG, "high watermark of the leader's last answer"),
        Column("lag", LONG, "high_watermark less last_offset: offsets left then"),
        Column("max_lag", LONG, "most offsets left at any of them"),
    ),
    key=(
        "cluster_id",
        "event_time",
        "broker_id",
        "replica_id",
        "topic_id",
        "topic",
        "partition",
    ),
    time="event_time",
    partitioning=("event_date",),
    area="replication",
)
