"""How far groups are behind, and why."""

import pyarrow as pa

from quotaflow.schemas.columns import CLUSTER_ID, PARTITION, TOPIC
from quotaflow.schemas.table import DOUBLE, INT, LONG, STRING, TIMESTAMP, Column, Table
from quotaflow.schemas.tables.group_snapshots import GROUP_ID, GROUP_TYPE

GROUP_LAG = Table(
    name="group_lag",
    comment=(
        "One row per group and partition that it has an offset in: how far it is behind, and "
        "whether it catches up. At rest the lag is what Kafka's own tools print."
    ),
    columns=(
        CLUSTER_ID,
        GROUP_ID,
        GROUP_TYPE,
        TOPIC,
        PARTITION,
        Column(
            "position",
            LONG,
            "committed offset: the next one to read. Of a share group its start offset: records "
            "after it may be done",
        ),
        Column("position_known_at", TIMESTAMP, "last time at which the group was there"),
        Column(
            "end_offset",
            LONG,
            "high watermark of the partition: the offset after the last record that consumers may "
            "read; null: not known",
        ),
        Column("end_known_at", TIMESTAMP, "last time at which the partition ended there"),
        Column(
            "lag",
            LONG,
            "records left to read: end_offset less position; of a share group what its coordinator "
            "says (KIP-1226)",
        ),
        Column(
            "lag_unknown_reason",
            STRING,
            "why lag is null: end_unknown, end_outdated (it is from before the position), "
            "beyond_end (the group committed an offset that the partition does not have), "
            "not_reported (a share group, and the broker says no lag)",
        ),
        Column(
            "lag_s",
            DOUBLE,
            "seconds from when the first record left was written to end_known_at. It is "
            "interpolated between the times at which the end is known",
        ),
        Column(
            "lag_s_unknown_reason",
            STRING,
            "why lag_s is null: lag_unknown, share_group (its lag has no first record), "
            "older_than_history (no end is known from before that record), end_went_back (the "
            "topic was made again, or lost records)",
        ),
        Column(
            "records_in_per_s",
            DOUBLE,
            "records written in a second, over the last ten minutes, or the last two times at "
            "which the end is known; null: it is known once",
        ),
        Column(
            "records_out_per_s",
            DOUBLE,
            "how many offsets the position moved on in a second, in the same way; null: it is "
            "known once, or went back",
        ),
        Column(
            "trend",
            STRING,
            "caught_up (lag is 0); went_back (the group set its position to an earlier offset); "
            "growing or shrinking, where the two rates differ by more than 5 %; steady; unknown",
        ),
        Column(
            "caught_up_in_s",
            DOUBLE,
            "seconds until lag is 0 at these rates; null unless it shrinks",
        ),
        Column("members", INT, "members that are assigned the partition, by the last snapshot"),
        Column("member_id", STRING, "the member; null: none, or several"),
        Column("client_id", STRING, "client.id of the member: untrusted text"),
        Column("client_address", STRING, "address of the member"),
    ),
    key=("cluster_id", "group_id", "topic", "partition"),
    time="position_known_at",
    clustering=("group_id", "topic"),
)

_SIGNALS = pa.list_(pa.struct([pa.field("signal", STRING), pa.field("value", DOUBLE)]))

WHY_GROUPS_LAG = Table(
    name="why_groups_lag",
    comment=(
        "Why groups lag: one row per group, topic and cause, the surest first, where the oldest "
        "record left is more than a minute old. Evidence is of the ten minutes before known_at. "
        "What clients name is no proof of who is guilty."
    ),
    columns=(
        CLUSTER_ID,
        GROUP_ID,
        GROUP_TYPE,
        TOPIC,
        Column(
            "known_at", TIMESTAMP, "last time at which a position or an end of the cluster is known"
        ),
        Column(
            "lag",
            LONG,
            "records left in all partitions where it is known; null: it is known in none",
        ),
        Column("lag_s", DOUBLE, "age of the oldest record left, in seconds; null: not known"),
        Column(
            "records_in_per_s",
            DOUBLE,
            "records written in a second, as in group_lag; null: not known",
        ),
        Column(
            "records_out_per_s",
            DOUBLE,
            "how many offsets the group moved on in a second, 0 if it did not in the last three "
            "minutes; null: not known of every partition",
        ),
        Column(
            "trend", STRING, "growing, shrinking, steady, went_back or unknown, as in group_lag"
        ),
        Column(
            "caught_up_in_s",
            DOUBLE,
            "seconds until lag is 0 at these rates; null: it does not shrink",
        ),
        Column("rank", INT, "1 for the surest cause"),
        Column(
            "cause",
            STRING,
            "throttled, fetch_limited, far_replica, out_of_range, rebalancing, not_polling, "
            "slow_processing, skewed_partitions, slow_broker, producers_faster, no_members, "
            "paused, or unknown",
        ),
        Column(
            "confidence",
            DOUBLE,
            "0.3 to 0.95, how well the evidence supports it; null: the cause is unknown",
        ),
        Column(
            "detail",
            STRING,
            "which quota, limit, broker, partition, state, or trigger of the last rebalance; null: "
            "the cause has none, or it is not known",
        ),
        Column(
            "evidence",
            _SIGNALS,
            "the numbers that the cause rests on; those that are not known are left out. "
            "docs/groups.md says what each is",
        ),
    ),
    key=("cluster_id", "group_id", "topic", "rank"),
    time="known_at",
    clustering=("group_id", "topic"),
    empty="while no group is more than a minute behind",
)
