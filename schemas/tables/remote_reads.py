"""`remote_reads`: what consumers read from remote storage (KIP-405, KIP-956)."""

from quotaflow.schemas.columns import (
    CLIENT,
    CLUSTER_ID,
    EVENT_DATE,
    MINUTE,
    PARTITION,
    TOPIC,
)
from quotaflow.schemas.table import DOUBLE, INT, LONG, Column, Table

REMOTE_READS = Table(
    name="remote_reads",
    comment=(
        "What consumers read below the local start of a log, from remote storage (KIP-405), one "
        "row per minute, client, broker and partition; least values, because local starts are "
        "those of the last snapshot by then"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        MINUTE,
        Column("broker_id", INT, "broker that answered"),
        *CLIENT[:2],
        TOPIC,
        PARTITION,
        Column(
            "fetches",
            LONG,
            "answers with remote records; one with those of several partitions counts for each",
        ),
        Column("bytes", LONG, "record bytes in them"),
        Column(
            "fetch_time_ms",
            DOUBLE,
            "time that the broker took for them, its waits for remote storage included; that of an "
            "answer with several such partitions is divided among them",
        ),
        Column(
            "empty_fetches",
            LONG,
            "empty answers before them, of a minute at most, though the records were there",
        ),
        Column(
            "over_quota_fetches",
            LONG,
            "those of them that began while remote reads of the broker were over its fetch_quota",
        ),
        Column("empty_time_ms", DOUBLE, "time that clients waited for empty answers"),
        Column("min_fetch_offset", LONG, "least offset that was read or asked for"),
        Column("local_log_start_offset", LONG, "first offset on disk, of the last snapshot"),
        Column(
            "fetch_quota",
            LONG,
            "remote.log.manager.fetch.max.bytes.per.second of the broker, in bytes per second "
            "(KIP-956); null: none, or no snapshot has its configs",
        ),
    ),
    key=(
        "cluster_id",
        "event_time",
        "broker_id",
        "principal",
        "client_id",
        "topic",
        "partition",
    ),
    time="event_time",
    empty="while no topic has remote storage (KIP-405), or nobody reads what is only there",
    partitioning=("event_date",),
    area="racks",
)
