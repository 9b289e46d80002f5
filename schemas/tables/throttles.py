"""Replication throttles (KIP-73): what was replicated, and what was held back."""

from quotaflow.schemas.columns import CLUSTER_ID, EVENT_DATE, MINUTE, PARTITION, TOPIC, TOPIC_ID
from quotaflow.schemas.table import BOOLEAN, DOUBLE, INT, LONG, STRING, TIMESTAMP, Column, Table

_SIDE = Column("side", STRING, "leader: the broker is read from; follower: it reads")

REPLICATION_TRAFFIC = Table(
    name="replication_traffic",
    comment=(
        "What each follower read of a partition from its leader, one row per minute; and, with no "
        "follower_id, what was produced into the partition"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        MINUTE,
        Column("leader_id", INT, "broker that was read from, or written to"),
        Column("follower_id", INT, "broker that read; null: bytes that clients produced"),
        TOPIC_ID,
        Column("topic", STRING, "name of the topic; null where nobody had told it by then"),
        PARTITION,
        Column("fetches", LONG, "fetches that named it or were answered with it; or PRODUCEs"),
        Column("bytes", LONG, "record bytes, as compressed by the producer (PartitionBytesInRate)"),
        Column("leader_throttled_bytes", LONG, "those of them the leader's list held (KIP-73)"),
        Column("follower_throttled_bytes", LONG, "those of them the follower's list held"),
        Column("first_fetch_offset", LONG, "least offset it asked for"),
        Column("last_fetch_offset", LONG, "greatest offset it asked for: its log end by then"),
        Column("high_watermark", LONG, "highest high watermark it was told"),
        Column(
            "offset_lag",
            LONG,
            "high_watermark less last_fetch_offset, not under 0; null: one of them was not told",
        ),
        Column(
            "behind_fetches",
            LONG,
            "fetches from below the high watermark they were answered with: no replica in sync "
            "does that",
        ),
        Column(
            "stalled_fetches",
            LONG,
            "fetches that asked for it and brought nothing, though more was there, as told before",
        ),
        Column("omitted_fetches", LONG, "fetches that took it out of their session (KIP-227)"),
    ),
    key=(
        "cluster_id",
        "event_time",
        "leader_id",
        "follower_id",
        "topic_id",
        "topic",
        "partition",
    ),
    time="event_time",
    partitioning=("event_date",),
)

REPLICATION_RATES = Table(
    name="replication_rates",
    comment=(
        "LeaderReplicationThrottledRate and FollowerReplicationThrottledRate of a broker (KIP-73), "
        "one row per second in which it moved bytes that a list holds, in sync or not"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        Column("event_time", TIMESTAMP, "start of the second, by the leader's clock"),
        Column("broker_id", INT, "broker whose rate it is"),
        _SIDE,
        Column("bytes", LONG, "record bytes in this second"),
        Column(
            "throttled_rate",
            DOUBLE,
            "bytes of this second and the ten before, over the time from the first to the last of "
            "them, one second at least: Kafka's SimpleRate when the last came, over aligned "
            "seconds; the broker's may differ by one sample",
        ),
        Column("quota", DOUBLE, "rate in force, bytes per second; null: none is known"),
        Column("is_over", BOOLEAN, "throttled_rate above the quota"),
    ),
    key=("cluster_id", "event_time", "broker_id", "side"),
    time="event_time",
    partitioning=("event_date",),
)


def _setter_columns(what: str) -> tuple[Column, ...]:
    return (
        Column(
            f"{what}_set_at", TIMESTAMP, f"when the {what} was set; null: the log does not tell"
        ),
        Column(f"{what}_set_by", STRING, "principal that did so"),
        Column(f"{what}_set_by_client_id", STRING, "its client.id: untrusted text"),
    )


REPLICATION_THROTTLES = Table(
    name="replication_throttles",
    comment=(
        "Whether a replication throttle (KIP-73) holds back, and why not: one row per minute and "
        "side of the replication of each partition that is listed or being moved, and one without "
        "a topic for a rate that stands where no list names the broker"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        MINUTE,
        TOPIC,
        PARTITION,
        _SIDE,
        Column("broker_id", INT, "broker that is listed, or whose rate it is"),
        Column("peer_broker_id", INT, "broker at the other side; null: none seen in the minute"),
        Column("listed", STRING, "entry, wildcard (the list is *), or unlisted"),
        Column("list_malformed", STRING, "entries of the list that mean nothing, if there are"),
        *_setter_columns("list"),
        Column("rate", DOUBLE, "bytes per second that stood in the minute; null: none is known"),
        Column(
            "rate_source",
            STRING,
            "dynamic_broker, dynamic_default, static (which has no effect), or unset; null: not "
            "known: set before the log began, if at all, and no snapshot was taken",
        ),
        *_setter_columns("rate"),
        Column(
            "is_configured",
            BOOLEAN,
            "at the end of the minute the list, or where there is none the rate, still stood",
        ),
        Column("is_moving", BOOLEAN, "the partition was being moved (KIP-455)"),
        Column("in_isr", BOOLEAN, "the follower was in sync all minute; null: not known"),
        Column(
            "in_isr_source",
            STRING,
            "fetch_offset (it asked from below the high watermark), alter_partition, or snapshot",
        ),
        Column("offset_lag", LONG, "how many offsets the follower was behind; null: not known"),
        Column("bytes", LONG, "record bytes replicated between the two"),
        Column(
            "peak_throttled_rate", DOUBLE, "highest throttled_rate of the broker and side, or 0"
        ),
        Column("stalled_fetches", LONG, "evidence: as in replication_traffic, by the side"),
        Column(
            "is_effective",
            BOOLEAN,
            "would hold back as soon as the rate is reached; null: not known, see reason",
        ),
        Column("is_biting", BOOLEAN, "the rate is reached and fetches are held back"),
        Column(
            "reason",
            STRING,
            "why it does not bite: no_throttle, rate_without_list, list_without_rate, "
            "static_rate_ignored, broker_gone, not_leader, not_replicating, in_isr, "
            "follower_caught_up, under_rate, no_stalled_fetches; or what is not known: "
            "list_unknown, rate_unknown, isr_unknown, lag_unknown",
        ),
    ),
    key=(
        "cluster_id",
        "event_time",
        "topic",
        "partition",
        "side",
        "broker_id",
        "peer_broker_id",
    ),
    time="event_time",
    partitioning=("event_date",),
)
