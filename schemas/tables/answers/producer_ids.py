"""Answers about producer ids."""

from quotaflow.schemas.columns import CLUSTER_ID
from quotaflow.schemas.table import BOOLEAN, DOUBLE, INT, LONG, STRING, TIMESTAMP, Column, Table
from quotaflow.schemas.tables import producer_ids as results

PRODUCER_ID_BURSTS = Table(
    name="producer_id_bursts",
    comment=(
        "One row per burst of new producer ids of a principal in the last week. Bursts of ten or "
        "more new producer ids of a principal, each at most 30 s after the one before, with their "
        "likely cause (KIP-936) and the numbers that show it. Four causes are accused: "
        "transactional_id_churn, producer_per_batch, producer_churn and restart_loop."
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
            "producer_per_batch (a new producer for every few requests), producer_churn (a host "
            "takes one or more ids per second for a minute or longer), restart_loop (one client "
            "after another that ends early, or works and ends; or a fleet that starts a third time "
            "within an hour), deploy_burst (many clients start within five minutes, each takes one "
            "or two ids, and a host at most a hundred; this is normal), epoch_exhaustion (they "
            "follow ids of the same transactional.id whose 32767 epochs are used up; this is "
            "normal), or unknown (the numbers "
            "fit none of these)",
        ),
        Column("is_accused", BOOLEAN, "cause is one of the four that a limit should stop"),
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
        Column(
            "source_address",
            STRING,
            "address of this host; for producer_churn the host that took most ids under any name",
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
        Column(
            "exhausted_ids",
            LONG,
            "its ids that follow one of the same transactional.id whose epochs are used up",
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
        "stopped is not limited for ever. Only seconds that a burst with an accused cause explains "
        "count: a deploy is normal, and nobody is limited for an unknown cause."
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
            "cause of the burst that explains the second: of the accused ones the largest",
        ),
        Column(
            "source",
            STRING,
            "program and host that took most ids of that burst",
        ),
        Column("source_address", STRING, "address of that host"),
    ),
    key=("cluster_id", "principal", "broker_id", "event_time"),
    time="event_time",
    clustering=(
        "event_time",
        "principal",
    ),
)

PRODUCER_ID_OFFENDERS = Table(
    name="producer_id_offenders",
    comment=(
        "One row per principal and address that take new producer ids faster than their quota for "
        "an accused cause (recent_violations): which limit would stop them, whom else it would "
        "reach, what harm they do, and why no plan may set it. Names that a client chose decide "
        "nothing alone: guilt is by principal, address, ids, connections and bytes."
    ),
    columns=(
        CLUSTER_ID,
        Column("principal", STRING, "authenticated principal as Kafka prints it, e.g. User:alice"),
        Column("client_address", STRING, "address that took the ids"),
        Column(
            "client_pattern",
            STRING,
            "program that took most of them there (client id with * for numbers): untrusted text",
        ),
        Column("cause", STRING, "cause of the burst, as in producer_id_bursts; an accused one"),
        Column("source", STRING, 'program and address, as "client_pattern at client_address"'),
        Column("since", TIMESTAMP, "first second over the quota in recent_violations"),
        Column(
            "step",
            STRING,
            "what stops it: producer_ids_rate (the cluster takes it), address (a rate of new "
            "connections), or client_quota (the loop keeps its connection)",
        ),
        Column("blocked_reason", STRING, "why no plan may set that, as a code; null: one may"),
        Column(
            "harm",
            STRING,
            "heap (the forecast of producer ids exceeds its bound), latency (clients of a broker "
            "waited longer than usual in two minutes or more in which it gave the address ten ids "
            "or more per second, after the offence began); null: none is measured, or its part in "
            "it is small: under a tenth of the bound of the heap, or of the broker's ids then",
        ),
        Column("quota_per_s", DOUBLE, "producer_ids_rate of the principal by conf, per broker"),
        Column("rate_per_s", DOUBLE, "rate in its worst second over that quota, at one broker"),
        Column("throttle_time_ms", LONG, "throttle time that the quota would give then, in ms"),
        Column("brokers", LONG, "brokers of the cluster: each limits new connections for itself"),
        Column(
            "nth_of_principal",
            INT,
            "1 for the address of its principal that a plan may limit, or that took most ids",
        ),
        Column("producer_ids", LONG, "ids it took in the period of conf (plan.offence_period_s)"),
        Column(
            "ids_per_s", DOUBLE, "new ids per second over the period: producer_ids / its length"
        ),
        Column("ids_share", DOUBLE, "its share of all ids given in the period, 0 to 1"),
        Column("allocating_connections", LONG, "connections it took them on, counted by minute"),
        Column("offending_minutes", LONG, "minutes of the period with more ids than its quota"),
        Column("period_minutes", LONG, "minutes of the period"),
        Column("other_principals", LONG, "other principals seen at the address"),
        Column("other_principal", STRING, "one of them; null: none"),
        Column(
            "other_programs",
            LONG,
            "programs of the principal there that moved records beyond the work of ids within "
            "address_history_s, also under the loop's client id (see address_programs); 0: they "
            "moved under 64 KiB, or in fewer than 20 requests",
        ),
        Column(
            "other_connections",
            LONG,
            "connections of all others there, each program in its busiest minute of "
            "address_history_s: a limit of a listed address lets all of them connect at once",
        ),
        Column("history_s", DOUBLE, "how long requests have been recorded without a gap, in s"),
        Column("address_history_s", DOUBLE, "how long that must be by conf, in s"),
        Column(
            "forecast_bytes", LONG, "greatest forecast of producer_id_heap, in bytes; null: none"
        ),
        Column("bound_bytes", DOUBLE, "its bound, in bytes"),
        Column("broker_id", INT, "broker with the harm; without harm that of rate_per_s"),
        Column("produce_p99_ms", DOUBLE, "p99 of PRODUCE in the last such minute, in ms"),
        Column("usual_produce_p99_ms", DOUBLE, "usual p99 of PRODUCE there, in ms"),
        Column("fetch_p99_ms", DOUBLE, "the same of consumer FETCH without its wait, in ms"),
        Column("usual_fetch_p99_ms", DOUBLE, "its usual p99, in ms"),
        Column("shrunk_partitions", LONG, "partitions down to their min.insync.replicas"),
    ),
    key=("cluster_id", "principal", "client_address"),
    time="since",
    clustering=(
        "since",
        "principal",
    ),
)

_OF_OFFENDER = ("harm", "throttle_time_ms", "forecast_bytes", "bound_bytes", "broker_id")
_WAITS = (
    *("produce_p99_ms", "usual_produce_p99_ms", "fetch_p99_ms", "usual_fetch_p99_ms"),
    "shrunk_partitions",
)

DEFAULT_QUOTA_PROPOSALS = Table(
    name="default_quota_proposals",
    comment=(
        "One row per cluster that takes producer_ids_rate (KIP-936) and where more principals "
        "offend under the default quota of conf than a plan may limit one by one: the quota of the "
        "default of all users, whom it would slow, and why no plan may set it."
    ),
    empty="where conf has no producer_ids.default_quota_per_s, where the cluster does not take the "
    "config, as stock Kafka, and where single limits do",
    columns=(
        CLUSTER_ID,
        Column("quota_per_s", DOUBLE, "producer_ids_rate that is asked for, per user and broker"),
        Column("prior_value", STRING, "the default that is set in the last snapshot; null: none"),
        Column("offenders", LONG, "principals under the default that a plan may limit now"),
        Column("ids_per_s", DOUBLE, "new producer ids per second that they all took"),
        Column("max_entities", LONG, "how many a plan may limit one by one (plan.max_entities)"),
        *PRODUCER_ID_OFFENDERS.same("principal", "source", "cause"),
        Column("since", TIMESTAMP, "first second of an offender over the quota"),
        *PRODUCER_ID_OFFENDERS.same(*_OF_OFFENDER, *_WAITS),
        Column(
            "other_principals",
            LONG,
            "principals that do not offend and have no producer_ids_rate of their own, which took "
            "ids faster than the default in a second of the week (plan.address_history_s)",
        ),
        Column("other_principal", STRING, "the fastest of them; null: none"),
        Column("other_rate_per_s", DOUBLE, "its greatest rate at one broker; null: none"),
        Column("history_s", DOUBLE, "how long requests have been recorded without a gap, in s"),
        Column("blocked_reason", STRING, "why no plan may set it, as a code; null: one may"),
    ),
    key=("cluster_id",),
    time="since",
    clustering=("since",),
)

EXPIRATION_PROPOSALS = Table(
    name="expiration_proposals",
    comment=(
        "One row per broker whose producer ids will take more heap than their bound, and whose "
        "producer.id.expiration.ms can be shorter without a cost to a producer that snapshots show "
        "(view producer_id_heap)."
    ),
    columns=(
        CLUSTER_ID,
        Column("broker_id", INT, "broker that leads the partitions"),
        Column("recommended_expiration_ms", LONG, "producer.id.expiration.ms that is asked for"),
        Column(
            "prior_value", STRING, "the value that is set on the broker itself; null: none is set"
        ),
        Column("expiration_ms", LONG, "its value now, from any source, in ms"),
        Column(
            "least_expiration_ms", LONG, "the shortest that costs no live producer its id, in ms"
        ),
        Column("forecast_bytes", LONG, "heap that ids will take, in bytes"),
        Column("bound_bytes", DOUBLE, "its bound by conf, in bytes"),
        Column("since", TIMESTAMP, "time of the last snapshot of producers"),
        Column("blocked_reason", STRING, "why no plan may set it, as a code; null: one may"),
    ),
    key=("cluster_id", "broker_id"),
    time="since",
    clustering=("since",),
)
