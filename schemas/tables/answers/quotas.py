"""Answers about quotas and traffic."""

from quotaflow.schemas.columns import CLUSTER_ID
from quotaflow.schemas.table import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    Column,
    Table,
)

QUOTA_BASELINES = Table(
    name="quota_baselines",
    comment=(
        "One row per user and kind of client quota, and one per user, client id and kind. The "
        "usage of the last 7 days at the broker where its p99 is greatest, and the quota that "
        "applies: what a quota of it may start from. Days are measured to the newest window, not "
        "to now. Usage in windows that are rolled up is within 4.4 % of the true one."
    ),
    columns=(
        CLUSTER_ID,
        Column("user", STRING, "name of the user, a principal without User:"),
        Column(
            "client_id",
            STRING,
            "client.id as the client gave it: untrusted text; null: the user, over all client ids "
            "but those with a quota of levels 1 and 2",
        ),
        Column(
            "quota_type",
            STRING,
            "producer_byte_rate, consumer_byte_rate, request_percentage or "
            "controller_mutation_rate",
        ),
        Column("broker_id", INT, "broker where the p99 of its usage is greatest"),
        Column(
            "usage_p99",
            DOUBLE,
            "99th percentile of its usage in the windows with usage at that broker, in the unit of "
            "the quota",
        ),
        Column("usage_median", DOUBLE, "median of the same, in the same unit"),
        Column("windows", LONG, "number of these windows"),
        Column(
            "history_s",
            DOUBLE,
            "seconds from its first known window, of the last 8 days, to the newest window of the "
            "cluster",
        ),
        Column("since", TIMESTAMP, "start of the first of these windows"),
        Column("until", TIMESTAMP, "start of its last window at any broker"),
        Column(
            "quota",
            DOUBLE,
            "quota that applied in its last window, own or inherited, in the same unit; null: none",
        ),
        Column(
            "quota_level",
            INT,
            "level of the entity that sets the quota: 1 user and client id, 2 user and default "
            "client id, 3 user, 4 default user and client id, 5 default user and default client "
            "id, 6 default user, 7 client id, 8 default client id; null: none is known",
        ),
        Column(
            "is_estimated",
            BOOLEAN,
            "the broker charges more than the usage has: request time without network threads, or "
            "bytes of a user with SHARE_FETCH",
        ),
    ),
    key=("cluster_id", "user", "client_id", "quota_type"),
    time="until",
    clustering=("until", "user"),
)

QUOTA_ADVICE = Table(
    name="quota_advice",
    comment=(
        "One row per user and kind of client quota. The quota that the use of the last days "
        "suggests for each user: conf's quotas.percentile of its windows at the broker where it "
        "used most, plus quotas.headroom. Client ids with a quota of their own for this user "
        "(levels 1 and 2) are left out, because no quota of the user limits them. A user that its "
        "quota throttled in more than one of ten windows would use more than it shows, so its "
        "quota is raised, to twice the quota at most and once a day at most. A day is measured to "
        "the newest window, not to now. Usage in windows that are rolled up is within 4.4 % of the "
        "true one. A first quota is no lower than the p99 of the busiest broker, half of the "
        "median there, and 65,536 bytes/s or 1 %. Principals that conf excludes (settings "
        "excluded.*) and those that fetch as followers, the brokers, have no row."
    ),
    columns=(
        CLUSTER_ID,
        Column("user", STRING, "name of the user, a principal without User:"),
        Column(
            "quota_type",
            STRING,
            "producer_byte_rate, consumer_byte_rate or request_percentage",
        ),
        Column(
            "advice",
            STRING,
            "set (no quota of users limits it; one of client ids alone, level 7 or 8, can), raise, "
            "wait (a raise is due 24 h after altered_at), or keep",
        ),
        Column(
            "recommended",
            DOUBLE,
            "quota to set, in bytes per second or percent of one thread; for keep the current "
            "quota",
        ),
        Column("quota", DOUBLE, "current quota of users, in the same unit; null: none"),
        Column(
            "quota_level",
            INT,
            "level of the entity that sets the quota: 1 user and client id, 2 user and default "
            "client id, 3 user, 4 default user and client id, 5 default user and default client "
            "id, 6 default user, 7 client id, 8 default client id; null: none is known",
        ),
        Column(
            "percentile_usage",
            DOUBLE,
            "conf's percentile of its usage in the windows of a broker, at the broker where that "
            "is greatest, in the same unit",
        ),
        Column(
            "peak_usage",
            DOUBLE,
            "its greatest usage in a window of a broker, in the same unit",
        ),
        Column("windows", LONG, "windows with usage, counted per broker"),
        Column("windows_in_force", LONG, "those of them in which the current quota applied"),
        Column(
            "throttled_windows",
            LONG,
            "those of windows_in_force in which this kind of quota throttled requests",
        ),
        Column("over_windows", LONG, "windows with more usage than recommended"),
        Column(
            "altered_at",
            TIMESTAMP,
            "when the quota of the user was last altered, by anybody and in either direction, as "
            "records of this pipeline, the request log and snapshots show; a quota that the first "
            "snapshot finds counts as altered then; null: never seen",
        ),
        Column(
            "since",
            TIMESTAMP,
            "start of its first window, or of the minute or hour of it if that is rolled up",
        ),
        Column("until", TIMESTAMP, "start of its last window"),
    ),
    key=("cluster_id", "user", "quota_type"),
    time="until",
    clustering=(
        "until",
        "user",
    ),
)


QUOTA_PROPOSALS = Table(
    name="quota_proposals",
    comment=(
        "One row per user and kind of client quota that conf lets a plan set. The advice of "
        "quota_advice for the users in conf's quotas.advised_users (* is all), where the current "
        "quota is the user's own or there is none, because a new quota of the user would replace "
        "those of its client ids. Raised quotas together stay within a part of the capacity of "
        "the smallest broker (quotas.raise_budget_share). Advice keep and wait are included so "
        "that the lease of a quota that this pipeline set goes on."
    ),
    columns=(
        CLUSTER_ID,
        Column("entity_name", STRING, "name of the user, a principal without User:"),
        Column("config_key", STRING, "name of the client quota"),
        *QUOTA_ADVICE.same(
            "recommended",
            "quota",
            "advice",
            "percentile_usage",
            "windows_in_force",
            "throttled_windows",
        ),
        Column("since", TIMESTAMP, "start of its first window"),
        *QUOTA_BASELINES.same("usage_p99", "history_s"),
        Column("quota_in_force", DOUBLE, "quota that applied in its last window, own or inherited"),
        Column("direction", STRING, "raise; null: a first quota, or none to change"),
        Column(
            "blocked_reason",
            STRING,
            "why a plan must not set or raise it, as a reason code; null: it can",
        ),
        Column(
            "capacity",
            DOUBLE,
            "capacity of the smallest broker by conf, in bytes per second; null: conf has none, or "
            "the quota is not of bytes",
        ),
        Column(
            "raised_total",
            DOUBLE,
            "sum of all raised quotas of this kind up to this one, smaller ones first, in bytes "
            "per second; null: it is not raised",
        ),
    ),
    key=("cluster_id", "entity_name", "config_key"),
    time="since",
    clustering=(
        "since",
        "entity_name",
    ),
)


TOP_TALKERS = Table(
    name="top_talkers",
    comment=(
        "One row per UTC day of the last week, principal and client. Who moves most bytes on a "
        "day, which part crosses racks, and what it costs at the prices of conf today."
    ),
    columns=(
        CLUSTER_ID,
        Column("day", TIMESTAMP, "start of the UTC day"),
        Column("talker_rank", LONG, "rank by bytes on that day; 1 moved most"),
        Column("principal", STRING, "principal, as Kafka prints it"),
        Column("client_id", STRING, "client.id as the client gave it: untrusted text"),
        Column(
            "is_internal",
            BOOLEAN,
            "a program of brokers or of this pipeline (protected_principals.is_internal)",
        ),
        Column("produced_bytes", LONG, "record bytes produced"),
        Column("consumed_bytes", LONG, "record bytes consumed"),
        Column("share", DOUBLE, "its part of all bytes of the cluster on that day, 0 to 1"),
        Column("cross_rack_bytes", LONG, "bytes known to have crossed racks"),
        Column(
            "unknown_rack_bytes",
            LONG,
            "bytes for which the rack of the client or broker is not known",
        ),
        Column(
            "cross_rack_share",
            DOUBLE,
            "cross_rack_bytes / bytes with known racks, 0 to 1; null: there are none",
        ),
        Column("topics", LONG, "topics with a known name"),
        Column(
            "cost",
            DOUBLE,
            "cost of the bytes and of those known to have crossed racks, in currency; what has no "
            "price in conf adds nothing; null: conf has no price",
        ),
        Column("currency", STRING, "currency of the prices, as conf names it"),
    ),
    key=("cluster_id", "day", "principal", "client_id"),
    time="day",
    clustering=("day",),
)
