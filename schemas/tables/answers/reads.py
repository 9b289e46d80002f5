"""Answers about reads of consumers."""

from quotaflow.schemas.columns import CLUSTER_ID
from quotaflow.schemas.table import BOOLEAN, DOUBLE, INT, LONG, STRING, TIMESTAMP, Column, Table
from quotaflow.schemas.tables import replicas

RACK_PAIRS = Table(
    name="rack_pairs",
    comment=(
        "One row per flow, rack of the client and rack of the broker, over the last day. Record "
        "bytes between racks, and what they cost at the prices of conf today (see "
        "rack_traffic_by_hour)."
    ),
    columns=(
        CLUSTER_ID,
        *replicas.RACK_TRAFFIC.same(
            "flow", "client_rack", "broker_rack", "requests", "bytes", "cross_rack_bytes"
        ),
        Column(
            "avoidable_bytes",
            LONG,
            "those of cross_rack_bytes that consumers would read in their own rack from the "
            "replica recommended to them (preferred_replicas); null for other flows, or not known",
        ),
        Column(
            "cross_rack_cost",
            DOUBLE,
            "cost of cross_rack_bytes, in currency; null: conf has no price, or bytes are not "
            "known",
        ),
        Column(
            "avoidable_cost",
            DOUBLE,
            "cost of avoidable_bytes, in currency; null: conf has no price, or bytes are not known",
        ),
        Column("currency", STRING, "currency of the prices, as conf names it"),
        Column("since", TIMESTAMP, "first hour with such bytes"),
        Column("until", TIMESTAMP, "last hour with such bytes"),
    ),
    key=("cluster_id", "flow", "client_rack", "broker_rack"),
    time="until",
    clustering=(
        "until",
        "flow",
    ),
)


PRODUCER_RACK_ADVICE = Table(
    name="producer_rack_advice",
    comment=(
        "One row per step that would keep produced bytes in their rack (KIP-1123), over the last "
        "day, of producers that send more than a tenth of a topic to other racks. Producers of "
        "brokers and of this pipeline are left out (protected_principals.is_internal)."
    ),
    columns=(
        CLUSTER_ID,
        Column(
            "advice",
            STRING,
            "set_producer_rack (its metrics name no rack, and partitions of the topic are led in "
            "its rack), check_producer (it names its rack, and sends elsewhere) or move_leaders "
            "(the topic has replicas in the rack, and no leader; never by a rack that a client id "
            "claims)",
        ),
        Column("principal", STRING, "producer, as Kafka prints it; null: move_leaders"),
        Column("client_id", STRING, "its client.id: untrusted text; null: move_leaders"),
        Column("topic", STRING, "topic that is produced to; null: not known"),
        Column(
            "unnamed_topic_id", STRING, "id of the topic if its name is not known; null otherwise"
        ),
        Column("client_rack", STRING, "rack of the producers"),
        Column(
            "rack_source",
            STRING,
            "how it is known: telemetry, address or client_id (claimed by the client id)",
        ),
        Column("leaders", LONG, "partitions of the topic that are led in this rack"),
        Column("bytes_per_hour", DOUBLE, "record bytes produced, per hour"),
        Column(
            "saved_bytes_per_hour",
            DOUBLE,
            "those that cross racks, per hour: the most that can be saved. Records with a key stay "
            "with their partition, and no request shows which have one",
        ),
        Column(
            "saved_cost_per_hour",
            DOUBLE,
            "cost of saved_bytes_per_hour, in currency; null: conf has no price",
        ),
        Column("currency", STRING, "currency of the prices, as conf names it"),
        Column("since", TIMESTAMP, "first minute that counts"),
        Column("until", TIMESTAMP, "last minute that counts"),
    ),
    key=(
        *("cluster_id", "advice", "principal", "client_id", "topic", "unnamed_topic_id"),
        "client_rack",
    ),
    time="until",
    clustering=("until", "advice"),
    empty="while producers' racks are not known, or they send little to other racks",
)


REMOTE_READ_ADVICE = Table(
    name="remote_read_advice",
    comment=(
        "One row per step that would spare reads of remote storage, or waits for it, by the last "
        "day (KIP-405, KIP-956). read_sooner and raise_local_retention are two ways to spare the "
        "same reads. Reads of brokers and of this pipeline ask for no step "
        "(protected_principals.is_internal)."
    ),
    columns=(
        CLUSTER_ID,
        Column(
            "advice",
            STRING,
            "read_sooner (the client reads records later than its topic keeps them on disk), "
            "raise_local_retention (keep the records of a topic on disk until they are read) or "
            "raise_remote_fetch_quota (clients waited while a broker was over its quota of remote "
            "reads)",
        ),
        Column("principal", STRING, "client of read_sooner, as Kafka prints it; null: another"),
        Column("client_id", STRING, "its client.id: untrusted text; null: another step"),
        Column("topic", STRING, "topic that is read; null: raise_remote_fetch_quota"),
        Column("broker_id", INT, "broker of raise_remote_fetch_quota; null: another step"),
        Column("bytes_per_hour", DOUBLE, "record bytes read from remote storage, per hour"),
        Column("fetches_per_hour", DOUBLE, "answers with them, per hour"),
        Column(
            "empty_time_ms_per_hour",
            DOUBLE,
            "time that clients waited for empty answers, in ms per hour",
        ),
        Column(
            "read_age_ms",
            LONG,
            "greatest age of records when they were read, in ms, as exact as snapshots are close; "
            "null: see unknown_reason",
        ),
        Column(
            "local_retention_ms",
            LONG,
            "how long the topic keeps records on disk: local.retention.ms, or retention.ms where "
            "it is -2; -1: no limit by time; null: not known, or another step",
        ),
        Column(
            "local_retention_bytes",
            LONG,
            "its local.retention.bytes, or retention.bytes where it is -2; -1: no limit; null: "
            "not known, or another step",
        ),
        Column(
            "recommended_ms",
            LONG,
            "raise_local_retention: local.retention.ms that would keep the records on disk, in "
            "whole hours; null: not known, or another step",
        ),
        Column(
            "extra_local_bytes",
            DOUBLE,
            "raise_local_retention: bytes more on the disks of all replicas, if local_retention_ms "
            "is what limits them; null: not known, or another step",
        ),
        Column(
            "fetch_quota",
            LONG,
            "raise_remote_fetch_quota: the quota of the broker, in bytes per second; null: another "
            "step, or several_quotas",
        ),
        Column(
            "unknown_reason",
            STRING,
            "older_than_ends (the records are older than the first end of their partition that a "
            "snapshot saw) or several_quotas (it was altered); null: all is known",
        ),
        Column(
            "saved_cost_per_hour",
            DOUBLE,
            "cost of bytes_per_hour, in currency; null: conf has no price, or nothing is saved",
        ),
        Column("currency", STRING, "currency of the prices, as conf names it"),
        Column("since", TIMESTAMP, "first minute that counts"),
        Column("until", TIMESTAMP, "last minute that counts"),
    ),
    key=("cluster_id", "advice", "principal", "client_id", "topic", "broker_id"),
    time="until",
    clustering=("until", "advice"),
    empty="while remote_reads has no rows of users' clients",
)


READ_PROBLEMS = Table(
    name="read_problems",
    comment=(
        "One row per client and topic that could not be read as it should, over the last day. "
        "What goes wrong when consumers read (KIP-392, cases 1 to 4), how often, and what to do. "
        "See fetch_faults, offset_resets, offset_lookups and lagging_reads for the single events."
    ),
    columns=(
        CLUSTER_ID,
        Column("principal", STRING, "authenticated principal as Kafka prints it, e.g. User:alice"),
        Column("client_id", STRING, "client.id as the client gave it: untrusted text"),
        Column("topic", STRING, "name of the topic; null: not known"),
        Column(
            "unnamed_topic_id",
            STRING,
            "id of the topic if its name is not known; null otherwise",
        ),
        Column("client_software_name", STRING, "client library; null: no fetch fault shows it"),
        Column(
            "client_software_version",
            STRING,
            "its version, the least of several by number; null: no fetch fault shows it",
        ),
        Column(
            "advice",
            STRING,
            "the first that fits: align_log_starts (the leader has what a follower deleted), "
            "update_client (it requests a refused offset again and again, returns to the leader "
            "instead of going where it is sent, or is a Java client before 3.4, which stays on a "
            "lagging follower: KAFKA-14379), extend_retention (it reads too late: the leader "
            "deleted the records too), check_offsets (past the end of the leader: offsets of "
            "another topic, or lost records), check_replication (broker_id lags) or "
            "refresh_metadata (the broker it fetches from no longer leads); null: the rest heals "
            "by itself",
        ),
        Column(
            "broker_id",
            INT,
            "broker where most of what the advice is about happened; null: no advice",
        ),
        Column("first_seen", TIMESTAMP, "first minute with a problem"),
        Column("last_seen", TIMESTAMP, "last minute with a problem"),
        Column(
            "uncommitted_answers",
            LONG,
            "case 1: answers for an offset past the high watermark",
        ),
        Column(
            "unavailable_answers",
            LONG,
            "case 2: answers for an offset past the end of the follower that other replicas have",
        ),
        Column(
            "too_small_answers",
            LONG,
            "case 3: answers for an offset before the log start of the replica",
        ),
        Column(
            "answers_leader_has",
            LONG,
            "those of too_small_answers for an offset that the leader has",
        ),
        Column(
            "too_large_answers",
            LONG,
            "case 4: answers for an offset past the end of the leader",
        ),
        Column(
            "unknown_answers",
            LONG,
            "answers for an offset out of range, where the case is not known",
        ),
        Column(
            "redirect_loop_answers",
            LONG,
            "answers that sent a connection to a replica for the third time or more",
        ),
        Column(
            "failed_redirect_answers",
            LONG,
            "errors of a replica that a client was sent to in such a loop",
        ),
        Column(
            "spin_answers",
            LONG,
            "answers to a connection that requested a refused offset for the third time or more",
        ),
        Column(
            "stale_metadata_answers",
            LONG,
            "errors of a broker that does not lead the partition or not know the topic any more",
        ),
        Column("other_error_answers", LONG, "answers with another error"),
        Column(
            "resets",
            LONG,
            "lookups of an offset to read from after one was out of range (offset_resets)",
        ),
        Column(
            "diverged_answers",
            LONG,
            "answers to epoch checks that name another epoch: the log was truncated there "
            "(KIP-320)",
        ),
        Column(
            "lagging_minutes",
            LONG,
            "minutes on a follower that fell further and further behind",
        ),
        Column("stays_on_lagging_follower", BOOLEAN, "lagging_minutes is above 0"),
    ),
    key=("cluster_id", "principal", "client_id", "topic", "unnamed_topic_id"),
    time="last_seen",
    clustering=(
        "last_seen",
        "principal",
    ),
)
