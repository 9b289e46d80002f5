"""Offsets of replicas, and what goes wrong when consumers read from them (KIP-392)."""

from quotaflow.schemas.columns import (
    CLIENT,
    CLUSTER_ID,
    EVENT_DATE,
    MINUTE,
    NAMED_TOPIC,
    NAMED_TOPIC_ID,
    PARTITION,
    TOPIC,
)
from quotaflow.schemas.table import INT, LONG, STRING, Column, Table

_PARTITION = ("cluster_id", "event_time", "topic_id", "topic", "partition")

REPLICA_OFFSETS = Table(
    name="replica_offsets",
    comment=(
        "Offsets of each replica, one row per minute, partition and replica: from the answers of "
        "brokers to FETCH and from the fetches of followers. A partition in which nothing changes "
        "has no row (KIP-227)"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        MINUTE,
        NAMED_TOPIC_ID,
        NAMED_TOPIC,
        PARTITION,
        Column("broker_id", INT, "broker of the replica"),
        Column("answers", LONG, "answers with its offsets, to consumers and followers"),
        Column("answers_to_followers", LONG, "of those, to followers: it led the partition"),
        Column("follower_fetches", LONG, "answers it got as a follower of this partition"),
        Column("min_log_start_offset", LONG, "least log start offset of answers and fetches"),
        Column("max_log_start_offset", LONG, "greatest log start offset of answers and fetches"),
        Column("min_high_watermark", LONG, "least high watermark in its answers"),
        Column("max_high_watermark", LONG, "greatest high watermark in its answers"),
        Column(
            "min_log_end_offset",
            LONG,
            "least log end offset: what a follower fetches from; null: it did not follow",
        ),
        Column("max_log_end_offset", LONG, "greatest log end offset; null: it did not follow"),
    ),
    key=(*_PARTITION, "broker_id"),
    time="event_time",
    partitioning=("event_date",),
    area="racks",
)

_BY_THEN = "in the minute and the one before it; null: none, or a redirect_loop"

FETCH_FAULTS = Table(
    name="fetch_faults",
    comment=(
        "What went wrong when consumers fetched (KIP-392, cases 1 to 4 of reading from followers), "
        "one row per minute, consumer, broker, partition and fault. The kinds of out of range "
        "follow from the offsets of replicas in that minute and the one before, if nothing is "
        "appended, committed and deleted again within those two; else the kind is unknown"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        MINUTE,
        *CLIENT[:2],
        Column("broker_id", INT, "broker that answered"),
        NAMED_TOPIC_ID,
        NAMED_TOPIC,
        PARTITION,
        Column(
            "fault",
            STRING,
            "uncommitted_offset (case 1: past the high watermark, answered empty); "
            "unavailable_offset (case 2: past the end of this follower, other replicas have it); "
            "offset_too_small (case 3: before its log start); offset_too_large (case 4: past the "
            "end of the leader); out_of_range_unknown; another error by Kafka's name, as "
            "not_leader_or_follower; redirect_loop (one connection was sent to a replica three "
            "times or more); out_of_range_spin (one connection requested an offset out of range "
            "three times or more). Answers of loops and spins also count under their own fault",
        ),
        Column("answers", LONG, "answers with that fault"),
        Column("min_fetch_offset", LONG, "least offset requested; null: no session has it"),
        Column("max_fetch_offset", LONG, "greatest offset requested"),
        Column(
            "preferred_read_replica", INT, "redirect_loop: the greatest broker id that answers name"
        ),
        Column(
            "leader_id", INT, "leader: it answers followers or names replicas; else by snapshot"
        ),
        Column("log_start_offset", LONG, f"greatest log start of this replica {_BY_THEN}"),
        Column("end_offset", LONG, f"greatest high watermark or log end of it {_BY_THEN}"),
        Column("leader_log_start_offset", LONG, f"greatest log start of the leader {_BY_THEN}"),
        Column("leader_end_offset", LONG, f"greatest high watermark of the leader {_BY_THEN}"),
        Column(
            "answers_leader_has",
            LONG,
            "answers for an offset that the leader has, by its offsets; null: not known of any",
        ),
        Column("client_software_name", STRING, "client library, one of those of the client"),
        Column("client_software_version", STRING, "its version, the least of several by number"),
    ),
    key=(*_PARTITION, "broker_id", "principal", "client_id", "fault"),
    time="event_time",
    partitioning=("event_date",),
    area="racks",
)

OFFSET_LOOKUPS = Table(
    name="offset_lookups",
    comment=(
        "Offsets that clients and followers looked up (LIST_OFFSETS), and epochs they checked "
        "(OFFSET_FOR_LEADER_EPOCH), one row per minute, client, broker, partition, position and "
        "error. A row without a topic counts requests whose body was too long to keep"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        MINUTE,
        *CLIENT[:2],
        Column("replica_id", INT, "node id of a follower; null for clients"),
        Column("broker_id", INT, "broker that answered"),
        Column("api", STRING, "LIST_OFFSETS or OFFSET_FOR_LEADER_EPOCH"),
        TOPIC,
        PARTITION,
        Column(
            "position",
            STRING,
            "what was requested: earliest, latest, max_timestamp, earliest_local, latest_tiered, "
            "earliest_pending_upload, by_timestamp, unknown; epoch_end: OFFSET_FOR_LEADER_EPOCH",
        ),
        Column("error_code", INT, "error code of the partition's answer, 0 none; null: no answer"),
        Column("requests", LONG, "requests for it"),
        Column("last_offset", LONG, "offset of the last answer; null: none"),
        Column(
            "diverged_answers",
            LONG,
            "epoch_end: answers that name another epoch than the request, or none: the log was "
            "cut there (KIP-320); 0 for other positions",
        ),
    ),
    key=(
        *("cluster_id", "event_time", "principal", "client_id", "replica_id", "broker_id"),
        *("api", "topic", "partition", "position", "error_code"),
    ),
    time="event_time",
    partitioning=("event_date",),
    area="racks",
)
