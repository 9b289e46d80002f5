"""Snapshots of groups: their members, their offsets, and where the partitions they read end.

A row is current until the next one of its identity, which is its key without event_time. A row
with `is_removed` ends it.
"""

import pyarrow as pa

from quotaflow.schemas.columns import CLUSTER_ID, PARTITION, SNAPSHOT_TIME, TOPIC, is_removed
from quotaflow.schemas.levels import ADMIN_API
from quotaflow.schemas.table import INT, LONG, STRING, Column, Table

ASSIGNED_PARTITION = pa.struct([pa.field("topic", STRING), pa.field("partition", INT)])

GROUP_ID = Column("group_id", STRING, "id of the group: what a client chose")
GROUP_TYPE = Column(
    "group_type",
    STRING,
    "protocol of the group: classic, consumer (KIP-848), share (KIP-932) or streams (KIP-1071)",
)

GROUPS = Table(
    name="groups",
    comment="One row per change of a group, when a snapshot saw it (ListGroups, and the Describe "
    "request of its type)",
    columns=(
        CLUSTER_ID,
        SNAPSHOT_TIME,
        GROUP_ID,
        GROUP_TYPE,
        Column(
            "protocol_type",
            STRING,
            "what its members are, as the first one said: consumer, connect, ...; empty where it "
            "has offsets alone",
        ),
        Column("state", STRING, "its state as Kafka names it, e.g. Stable, Empty; null if unknown"),
        Column("coordinator_id", INT, "broker that coordinates it"),
        Column("assignor", STRING, "assignor in use; null: none, or nobody joined"),
        Column(
            "group_epoch",
            INT,
            "epoch of the group (KIP-848); null for the classic protocol, where Kafka shows no "
            "generation",
        ),
        Column("members", INT, "its members"),
        is_removed("the group"),
    ),
    key=("cluster_id", "group_id", "event_time"),
    time="event_time",
    clustering=("event_time", "group_id"),
    area="groups",
    level=ADMIN_API,
)

GROUP_ASSIGNMENTS = Table(
    name="group_assignments",
    comment="One row per change of a member of a group, when a snapshot saw it",
    columns=(
        CLUSTER_ID,
        SNAPSHOT_TIME,
        GROUP_ID,
        Column("member_id", STRING, "id of the member, which the client or its coordinator made"),
        Column("group_instance_id", STRING, "id of a static member (KIP-345); null for others"),
        Column("client_id", STRING, "client.id as the client gave it: untrusted text"),
        Column("client_address", STRING, "address the client connected from"),
        Column(
            "rack_id",
            STRING,
            "client.rack of the member; null: none, or the classic protocol, which has none",
        ),
        Column("member_epoch", INT, "epoch of the member (KIP-848); null for the classic protocol"),
        Column(
            "assigned_partitions",
            pa.list_(ASSIGNED_PARTITION),
            "partitions assigned to it, sorted; of a streams member those of its active tasks. "
            "Null: the assignment cannot be read",
        ),
        is_removed("the member"),
    ),
    key=("cluster_id", "group_id", "member_id", "event_time"),
    time="event_time",
    clustering=("event_time", "group_id"),
    area="groups",
    level=ADMIN_API,
)

GROUP_OFFSETS = Table(
    name="group_offsets",
    comment="One row per change of a group's offset in a partition, when a snapshot saw it",
    columns=(
        CLUSTER_ID,
        SNAPSHOT_TIME,
        GROUP_ID,
        GROUP_TYPE,
        TOPIC,
        PARTITION,
        Column("committed_offset", LONG, "offset that the group reads next; null for share groups"),
        Column(
            "start_offset",
            LONG,
            "first offset that a share group has not finished (KIP-932); null for other groups",
        ),
        Column(
            "reported_lag",
            LONG,
            "records that a share group has left, as its coordinator says (KIP-1226); null for "
            "other groups, and where the broker does not say it",
        ),
        is_removed("the offset"),
    ),
    key=("cluster_id", "group_id", "topic", "partition", "event_time"),
    time="event_time",
    clustering=("event_time", "group_id"),
    area="groups",
    level=ADMIN_API,
)

PARTITION_OFFSETS = Table(
    name="partition_offsets",
    comment="One row per change of the offsets of a partition that some group has an offset in, or "
    "of a topic with remote storage, when a snapshot saw it (ListOffsets)",
    columns=(
        CLUSTER_ID,
        SNAPSHOT_TIME,
        TOPIC,
        PARTITION,
        Column("log_start_offset", LONG, "first offset, remote storage included"),
        Column(
            "log_end_offset",
            LONG,
            "high watermark: the offset after the last record that consumers may read",
        ),
        Column(
            "last_stable_offset",
            LONG,
            "what read_committed may read up to: first offset of the oldest open transaction, or "
            "log_end_offset; null: the broker does not say it",
        ),
        Column(
            "local_log_start_offset",
            LONG,
            "first offset on the leader's disk (KIP-405); null: the broker does not say it",
        ),
        Column(
            "last_tiered_offset",
            LONG,
            "last offset in remote storage (KIP-1005); null: none is there, or the broker does "
            "not say it",
        ),
        is_removed("the partition, or the last group's offset in it"),
    ),
    key=("cluster_id", "topic", "partition", "event_time"),
    time="event_time",
    clustering=("event_time", "topic"),
    area="groups",
    level=ADMIN_API,
)
