"""Replication throttles (KIP-73): replicated bytes, and which throttles limit them."""

from quotaflow.schemas.columns import (
    CLUSTER_ID,
    EVENT_DATE,
    MINUTE,
    NAMED_TOPIC,
    NAMED_TOPIC_ID,
    PARTITION,
    TOPIC,
)
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
        NAMED_TOPIC_ID,
        NAMED_TOPIC,
        PARTITION,
        Column("fetches", LONG, "fetches whose request or answer has it; or PRODUCEs"),
        Column("bytes", LONG, "record bytes, as compressed by the producer (PartitionBytesInRate)"),
        Column(
            "leader_throttled_bytes", LONG, "those of them that the leader's list covers (KIP-73)"
        ),
        Column("follower_throttled_bytes", LONG, "those of them that the follower's list covers"),
        Column("first_fetch_offset", LONG, "least offset it requested"),
        Column("last_fetch_offset", LONG, "greatest offset it requested: its log end by then"),
        Column("high_watermark", LONG, "highest high watermark in its answers"),
        Column(
            "offset_lag",
            LONG,
            "high_watermark less last_fetch_offset, at least 0; null: one of them is not known",
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
            "fetches that requested it and returned nothing, though an earlier answer shows more",
        ),
        Column("omitted_fetches", LONG, "fetches that removed it from their session (KIP-227)"),
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
    area="replication",
)

REPLICATION_RATES = Table(
    name="replication_rates",
    comment=(
        "LeaderReplicationThrottledRate and FollowerReplicationThrottledRate of a broker (KIP-73), "
        "one row per second in which it moved bytes that a list covers, in sync or not"
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
        Column("quota", DOUBLE, "rate that applies, bytes per second; null: none is known"),
        Column("is_over", BOOLEAN, "throttled_rate above the quota"),
    ),
    key=("cluster_id", "event_time", "broker_id", "side"),
    time="event_time",
    partitioning=("event_date",),
    area="replication",
)


def _setter_columns(what: str) -> tuple[Column, ...]:
    return (
        Column(f"{what}_set_at", TIMESTAMP, f"when the {what} was set; null: not in the log"),
        Column(f"{what}_set_by", STRING, "principal that did so"),
        Column(f"{what}_set_by_client_id", STRING, "its client.id: untrusted text"),
    )


REPLICATION_THROTTLES = Table(
    name="replication_throttles",
    comment=(
        "Whether a replication throttle (KIP-73) limits, and why not: one row per minute and "
        "side of the replication of each partition that is listed or being moved, and one without "
        "a topic for a rate that is set where no list names the broker"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        MINUTE,
        TOPIC,
        PARTITION,
        _SIDE,
        Column("broker_id", INT, "broker that is listed, or whose rate it is"),
        Column("peer_broker_id", INT, "broker at the other side; null: none in the minute"),
        Column("listed", STRING, "entry, wildcard (the list is *), or unlisted"),
        Column("list_malformed", STRING, "entries of the list that mean nothing, if there are"),
        *_setter_columns("list"),
        Column(
            "rate",
            DOUBLE,
            "rate that was set in the minute, in bytes per second; null: none is known",
        ),
        Column(
            "rate_source",
            STRING,
            "dynamic_broker, dynamic_default, static (which has no effect), or unset; null: not "
            "known: it is older than the log, if it is set, and there is no snapshot",
        ),
        *_setter_columns("rate"),
        Column(
            "is_configured",
            BOOLEAN,
            "the list, or without one the rate, was set at the end of the minute",
        ),
        Column("is_moving", BOOLEAN, "the partition was being moved (KIP-455)"),
        Column("in_isr", BOOLEAN, "the follower was in sync all minute; null: not known"),
        Column(
            "in_isr_source",
            STRING,
            "source of in_isr: fetch_offset (it requested an offset below the high watermark), "
            "alter_partition, or snapshot",
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
            "would limit as soon as the rate is reached; null: not known, see reason",
        ),
        Column("is_biting", BOOLEAN, "the rate is reached and fetches stall"),
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
    area="replication",
)
