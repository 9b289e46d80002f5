"""Answers about producer ids."""

from quotaflow.schemas.columns import CLUSTER_ID
from quotaflow.schemas.table import BOOLEAN, DOUBLE, LONG, STRING, TIMESTAMP, Column, Table
from quotaflow.schemas.tables import producer_ids as results

PRODUCER_ID_BURSTS = Table(
    name="producer_id_bursts",
    comment=(
        "One row per burst of new producer ids of a principal in the last week. Bursts of ten or "
        "more new producer ids of a principal, each at most 30 s after the one before, with their "
        "likely cause (KIP-936) and the numbers that show it. Three causes are accused: "
        "transactional_id_churn, producer_per_batch and restart_loop."
    ),
    columns=(
        CLUSTER_ID,
        Column("principal", STRING, "authenticated principal as Kafka prints it, e.g. User:alice"),
        Column("started_at", TIMESTAMP, "when the first id was given"),
        Column("ended_at", TIMESTAMP, "when the last id was given"),
        Column(
            "cause",
            STRING,
            "transactional_id_churn (new transactional.ids again and again, not used later), "
            "producer_per_batch (a new producer for every few requests), restart_loop (one client "
            "after another that ends early, or works and ends), deploy_burst (many clients start, "
            "each takes one or two ids; this is normal), or unknown (the numbers fit none of "
            "these)",
        ),
        Column("is_accused", BOOLEAN, "cause is one of the three that a quota should limit"),
        Column("ids", LONG, "new producer ids"),
        Column("clients", LONG, "clients that took them, by client id and address"),
        Column("hosts", LONG, "addresses of those clients"),
        Column("sources", LONG, "programs and hosts that took them (see source)"),
        Column(
            "source",
            STRING,
            "program and host that took most of them: client ids that differ only in numbers or "
            "random parts are one program",
        ),
        Column("source_ids", LONG, "ids that this source took"),
        Column("source_clients", LONG, "client ids of this source"),
        Column("source_duration_ms", LONG, "time between its first and its last id, in ms"),
        Column("median_gap_ms", DOUBLE, "median time between its ids, in ms; null: it took one"),
        Column("requests_per_id", DOUBLE, "its PRODUCE requests per id"),
        Column(
            "new_transactional_ids",
            LONG,
            "its ids for a transactional.id that had none before",
        ),
        Column(
            "abandoned_ids",
            LONG,
            "its ids that were not named again after its last one was given",
        ),
    ),
    key=("cluster_id", "principal", "started_at"),
    time="ended_at",
    clustering=(
        "ended_at",
        "principal",
    ),
)


RECENT_VIOLATIONS = Table(
    name="recent_violations",
    comment=(
        "One row per second in which a principal was over its producer-id quota on a broker. The "
        "seconds over the quota (KIP-936) that a plan can answer: those of the last hour (conf's "
        "plan.violation_lookback_s) of what is known of the cluster, so that a principal that "
        "stopped is not limited for ever. Seconds that only a deploy_burst explains are left out, "
        "because many clients that start at once are normal."
    ),
    columns=(
        CLUSTER_ID,
        *results.PRODUCER_ID_RATES.same("event_time", "broker_id", "principal"),
        Column("kind", STRING, "allocation, always"),
        *results.PRODUCER_ID_RATES.same(
            "sightings", "new_ids", "new_ids_exact", "rate_per_s", "quota_per_s", "throttle_time_ms"
        ),
        Column(
            "cause",
            STRING,
            "cause of the burst that explains the second, the largest that is no deploy_burst; "
            "null: no burst does",
        ),
        Column(
            "source",
            STRING,
            "program and host that took most ids of that burst; null: no burst",
        ),
    ),
    key=("cluster_id", "principal", "broker_id", "event_time"),
    time="event_time",
    clustering=(
        "event_time",
        "principal",
    ),
)
