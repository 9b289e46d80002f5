"""`preferred_replicas`: the replica each consumer reads from, and the nearest one (KIP-392)."""

import pyarrow as pa

from quotaflow.schemas.columns import (
    CLIENT,
    CLUSTER_ID,
    EVENT_DATE,
    MINUTE,
    NAMED_TOPIC,
    NAMED_TOPIC_ID,
    PARTITION,
)
from quotaflow.schemas.table import BOOLEAN, INT, LONG, STRING, Column, Table

PREFERRED_REPLICAS = Table(
    name="preferred_replicas",
    comment=(
        "Which broker each consumer read a partition from, which one the leader should name, and "
        "which one is nearest (KIP-392), one row per minute, consumer, partition and broker; of "
        "answers with records or with a preferred replica. Leaders, in-sync replicas, racks and "
        "configs are those of the last snapshot by then, of the first one for what was before it"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        MINUTE,
        *CLIENT[:2],
        Column("client_rack", STRING, "client.rack, or the rack that conf gives its address or id"),
        Column("is_rack_inferred", BOOLEAN, "client_rack is that of conf: the consumer sends none"),
        Column(
            "rack_source",
            STRING,
            "how client_rack is known: request (client.rack of a FETCH), address (conf's racks) or "
            "client_id (claimed by the client id, by conf's rack_patterns); null: it is not known, "
            "or the row is older",
        ),
        NAMED_TOPIC_ID,
        NAMED_TOPIC,
        PARTITION,
        Column("broker_id", INT, "broker that answered"),
        Column("broker_rack", STRING, "broker.rack of it"),
        Column("api_version", INT, "least version of the FETCHes; below 11 they have no rack"),
        Column("fetches", LONG, "answers with records"),
        Column("bytes", LONG, "record bytes in them, as compressed by the producer"),
        Column("redirects", LONG, "answers that name a preferred replica, and have no records"),
        Column("preferred_read_replica", INT, "the last one that answers name"),
        Column("leader_id", INT, "broker that leads the partition"),
        Column("leader_rack", STRING, "broker.rack of the leader"),
        Column(
            "expected_replica",
            INT,
            "broker the leader should send the consumer to by its replica.selector.class and the "
            "client.rack sent, the leader itself included; null: not known, see eligibility",
        ),
        Column(
            "expected_reason",
            STRING,
            "why: no_selector, selector_unknown (a custom class), no_client_rack, "
            "leader_in_rack, follower_in_rack, no_replica_in_rack or not_eligible_in_rack (those "
            "there are out of sync or offline); null: not known",
        ),
        Column(
            "recommended_replica",
            INT,
            "broker to read from if the selector were Kafka's RackAwareReplicaSelector and the "
            "consumer sent client_rack",
        ),
        Column("recommended_reason", STRING, "why, in the words of expected_reason"),
        Column(
            "eligible_replicas",
            pa.list_(INT),
            "followers in client_rack that are in sync and online, of which Kafka names the one "
            "with the most records; null unless recommended_reason is follower_in_rack",
        ),
        Column(
            "cross_rack_bytes",
            LONG,
            "bytes, where client_rack and broker_rack differ; null: one of them is not known",
        ),
        Column(
            "avoidable_bytes",
            LONG,
            "those of them that recommended_replica would have kept in the rack; null: not known",
        ),
        Column(
            "hw_lag",
            LONG,
            "highest high watermark in the leader's answers of the minute, less the highest that "
            "this broker sent this consumer; null: it is the leader, or the leader sent none",
        ),
        Column(
            "eligibility",
            STRING,
            "known; offsets_unknown: several replicas of the rack are in sync, and which of them "
            "has most is in no log; or what no snapshot has by then: replicas_unknown, "
            "leader_unknown, selector_unseen, racks_unknown",
        ),
        Column(
            "is_before_snapshot",
            BOOLEAN,
            "the minute was before the first snapshot; null: replicas_unknown",
        ),
    ),
    key=(
        "cluster_id",
        "event_time",
        "principal",
        "client_id",
        "client_rack",
        "is_rack_inferred",
        "topic_id",
        "topic",
        "partition",
        "broker_id",
    ),
    time="event_time",
    partitioning=("event_date",),
    area="racks",
)

RACK_TRAFFIC = Table(
    name="rack_traffic",
    comment=(
        "Record bytes between racks, one row per minute, flow, broker and rack of the other side. "
        "Racks of brokers are those of the last snapshot by then, of the first one before it"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        MINUTE,
        Column(
            "flow",
            STRING,
            "produced, consumed, or replicated (read by a follower from the leader)",
        ),
        Column(
            "client_rack",
            STRING,
            "rack of the other side: a consumer's client.rack, the broker.rack of a follower, else "
            "the rack that conf gives the client's address or id; null: not known",
        ),
        Column("is_rack_inferred", BOOLEAN, "client_rack is that of conf: the client sends none"),
        Column(
            "rack_source",
            STRING,
            "how client_rack is known: request (client.rack of a FETCH), address (conf's racks), "
            "client_id (claimed by the client id, by conf's rack_patterns) or broker (broker.rack "
            "of a follower); null: it is not known, or the row is older",
        ),
        Column("broker_id", INT, "broker that took or gave the records"),
        Column("broker_rack", STRING, "broker.rack of it"),
        Column("requests", LONG, "requests with records"),
        Column("bytes", LONG, "record bytes, as compressed by the producer"),
        Column(
            "cross_rack_bytes",
            LONG,
            "bytes, where client_rack and broker_rack differ; null: one of them is not known",
        ),
    ),
    key=(
        "cluster_id",
        "event_time",
        "flow",
        "client_rack",
        "is_rack_inferred",
        "broker_id",
    ),
    time="event_time",
    partitioning=("event_date",),
    area="racks",
)
