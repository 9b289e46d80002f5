"""Answers about throttles of replication that plans propose."""

from quotaflow.schemas.columns import CLUSTER_ID
from quotaflow.schemas.table import BOOLEAN, DOUBLE, INT, LONG, STRING, TIMESTAMP, Column, Table
from quotaflow.schemas.tables.answers import replication

THROTTLE_CHECKS = Table(
    name="throttle_checks",
    comment=(
        "One row per finding about the replication throttles that are set. What is wrong, or can "
        "be, with the replication throttles of a cluster (KIP-73)."
    ),
    columns=(
        CLUSTER_ID,
        Column(
            "finding",
            STRING,
            "list_without_rate, rate_without_list, static_rate_ignored (these do nothing); "
            "broker_gone, malformed_list (these name no replica); wildcard_list (covers ordinary "
            "catching up too); moved_unlisted (a replica is moved and no list covers it); "
            "rate_below_1_mb (too low for brokers to measure well); response_too_large (see "
            "throttle_sizing); stale_list, stale_rate (nothing that the list, or any list, covers "
            "was moved or behind for conf's replication.stale_throttle_s, 600 by default)",
        ),
        Column("topic", STRING, "topic of the list; null: the finding is not about one"),
        Column("side", STRING, "leader or follower"),
        Column("broker_id", INT, "broker that the finding is about; null: it is not about one"),
        Column("rate", DOUBLE, "rate that is set, in bytes per second; null: none"),
        Column(
            "set_at",
            TIMESTAMP,
            "when the list was set, or the rate where the finding is about the rate; null: before "
            "the request log started",
        ),
        Column("age_s", DOUBLE, "time since set_at, in seconds; null: set_at is not known"),
        Column("set_by", STRING, "principal that set it; null: not known"),
        Column("set_by_client_id", STRING, "its client.id: untrusted text; null: not known"),
        Column(
            "replicas",
            LONG,
            "sides of replications that the finding is about; brokers for response_too_large",
        ),
        Column(
            "malformed_entries",
            STRING,
            "entries of malformed_list that name no replica; null for other findings",
        ),
        Column(
            "response_max_bytes",
            LONG,
            "replica.fetch.response.max.bytes of the brokers, in bytes; Kafka's default if no "
            "snapshot has it",
        ),
        Column(
            "largest_response_max_bytes",
            LONG,
            "largest value of replica.fetch.response.max.bytes that fits, in bytes",
        ),
        Column("bounded_by", STRING, "what limits that value: quota or network"),
        Column("event_time", TIMESTAMP, "last minute with data about replication"),
    ),
    key=("cluster_id", "finding", "topic", "side", "broker_id"),
    time="event_time",
    clustering=(
        "event_time",
        "finding",
    ),
)


THROTTLED_REPLICA_PROPOSALS = Table(
    name="throttled_replica_proposals",
    comment=(
        "One row per list of throttled replicas that should name more replicas. Lists of topics "
        "without replicas that are being moved while a rate for them is set, so that the move is "
        "not limited (KIP-73; see throttle_checks, moved_unlisted). Entries that a list already "
        "has stay."
    ),
    columns=(
        CLUSTER_ID,
        Column("entity_type", STRING, "topic"),
        Column("entity_name", STRING, "name of the topic"),
        Column(
            "config_key",
            STRING,
            "leader.replication.throttled.replicas or follower.replication.throttled.replicas",
        ),
        Column(
            "config_value",
            STRING,
            "the whole desired list: entries partition:broker, comma-separated",
        ),
        Column("prior_value", STRING, "the list now; null: there is none"),
        Column("reason_code", STRING, "moved_unlisted"),
        Column("replicas", LONG, "replicas that are moved and that the list does not name"),
        Column(
            "rate_bytes_per_s",
            DOUBLE,
            "least rate that is set for a broker of these replicas, in bytes per second",
        ),
        Column(
            "written_bytes_per_s",
            DOUBLE,
            "what is written into all that the list would name then, in bytes per second, at the "
            "broker where that is not below the rate; null: it is below the rate everywhere",
        ),
        Column("evidence_table", STRING, "table or view that shows it"),
        Column("evidence_key", STRING, "which of its rows"),
        Column(
            "since",
            TIMESTAMP,
            "since when replicas are moved without the list, at most the last hour",
        ),
        Column("priority", INT, "lower is more urgent"),
        Column(
            "blocked_reason",
            STRING,
            "why a plan must not set it: malformed_list (the list has entries that name no "
            "replica), rate_not_above_writes (the rate is not above written_bytes_per_s, so the "
            "move would never end) or not_managed (conf's replication.manage is false); null: a "
            "plan can",
        ),
        Column("lease_s", LONG, "length of the lease, in seconds"),
        Column(
            "renew_only",
            BOOLEAN,
            "true: a plan only renews what this pipeline set for the same evidence, and changes "
            "nothing",
        ),
    ),
    key=("cluster_id", "entity_name", "config_key"),
    time="since",
    clustering=(
        "since",
        "entity_name",
    ),
)


REPLICATION_PROPOSALS = Table(
    name="replication_proposals",
    comment=(
        "One row per config of a replication throttle that should change. Which configs of "
        "replication throttles to change (KIP-73): rates, by replication_rate_advice, while "
        "replicas are moved or behind; stale rates and lists, by throttle_checks; and lists "
        "without moved replicas, by throttled_replica_proposals. A plan can set rates only if "
        "conf's replication.manage allows it. Of stale ones it can remove only what this "
        "pipeline's own login or one of replication.cleanup_principals set, entry by entry where "
        "a list also has entries of others."
    ),
    columns=(
        CLUSTER_ID,
        Column("entity_type", STRING, "broker or topic"),
        Column("entity_name", STRING, "node id of the broker, or name of the topic"),
        Column("config_key", STRING, "config of a rate or of a list of throttled replicas"),
        Column(
            "config_value",
            STRING,
            "desired value, a rate in bytes per second or a list; null: the config is to be "
            "removed, or, if blocked_reason is set, no value is right",
        ),
        Column("prior_value", STRING, "value now; null: not set on the entity itself"),
        Column(
            "reason_code",
            STRING,
            "a reason of replication_rate_advice, stale_rate, stale_list or moved_unlisted",
        ),
        Column(
            "other_bytes_per_s",
            DOUBLE,
            "traffic of the broker beside what the throttle limits, in bytes per second; null: the "
            "reason is none of replication_rate_advice",
        ),
        Column(
            "capacity_bytes_per_s",
            DOUBLE,
            "what the broker can carry, in bytes per second; null: not known, or as above",
        ),
        Column(
            "capacity_source",
            STRING,
            "conf or latency (see replication_demand); null: as capacity_bytes_per_s",
        ),
        Column(
            "written_bytes_per_s",
            DOUBLE,
            "what is written into the throttled replicas, in bytes per second; null: not part of "
            "the reason",
        ),
        Column(
            "rate_bytes_per_s",
            DOUBLE,
            "rate that is set now, in bytes per second; null: none, or not part of the reason",
        ),
        Column(
            "set_by",
            STRING,
            "principal that set the rate or named entries of the list; null: not known",
        ),
        Column(
            "matching",
            LONG,
            "replicas that the list does not name, for moved_unlisted; entries that this pipeline "
            "may remove, for stale_list; null for other reasons",
        ),
        Column("total", LONG, "entries of the list, for stale_list; null for other reasons"),
        *replication.REPLICATION_DEMAND.same(
            "produce_p99_ms", "usual_produce_p99_ms", "fetch_p99_ms", "usual_fetch_p99_ms"
        ),
        Column(
            "shrunk_partitions",
            LONG,
            "partitions of the broker that came down to their min.insync.replicas recently; null: "
            "clients of the broker are well, or the reason is none of replication_rate_advice",
        ),
        Column("evidence_table", STRING, "table or view that shows it"),
        Column("evidence_key", STRING, "which of its rows"),
        Column("since", TIMESTAMP, "since when the reason exists"),
        Column("priority", INT, "lower is more urgent"),
        Column(
            "blocked_reason",
            STRING,
            "why a plan must not set it, as a code; null: a plan can. For rates: capacity_unknown, "
            "floor_exceeds_capacity, rate_without_list, changed_recently, not_managed. For stale "
            "ones: set_by_other, default_of_all_brokers. For lists without moved replicas: as in "
            "throttled_replica_proposals",
        ),
        Column("lease_s", LONG, "length of the lease, in seconds; null: it has no end"),
        Column(
            "renew_only",
            BOOLEAN,
            "true: a plan only renews what this pipeline set while the replicas are still moved, "
            "and changes nothing; false where a person must decide (replication.manage, a "
            "malformed list, settings of others) and for a rate that no list uses",
        ),
    ),
    key=("cluster_id", "entity_type", "entity_name", "config_key"),
    time="since",
    clustering=(
        "since",
        "entity_type",
    ),
)


LEFTOVER_PROPOSALS = Table(
    name="leftover_proposals",
    comment=(
        "One row per replication throttle that is left over by snapshots alone (view "
        "throttle_leftovers), in a cluster without a request log of the last day. Nobody knows "
        "there who set it, so a plan removes it only if conf's replication.remove_leftovers "
        "allows it."
    ),
    columns=(
        CLUSTER_ID,
        Column("entity_type", STRING, "broker or topic"),
        Column("entity_name", STRING, "node id of the broker, or name of the topic"),
        Column("config_key", STRING, "config of a rate or of a list of throttled replicas"),
        Column("prior_value", STRING, "value in the last snapshot, which is to be removed"),
        Column("reason_code", STRING, "leftover_list or leftover_rate"),
        Column("age_s", DOUBLE, "since how long snapshots show this value, in seconds"),
        Column("since", TIMESTAMP, "time of the last snapshot of configs"),
        Column("blocked_reason", STRING, "why no plan may remove it, as a code; null: one may"),
    ),
    key=("cluster_id", "entity_type", "entity_name", "config_key"),
    time="since",
    clustering=("since", "entity_name"),
    empty="where nothing is left over, or a request log shows who set it",
)
