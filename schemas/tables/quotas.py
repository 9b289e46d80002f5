"""`quota_usage`: what clients use of their quotas."""

from quotaflow.schemas.columns import CLIENT, CLUSTER_ID, EVENT_DATE
from quotaflow.schemas.table import BOOLEAN, DOUBLE, INT, LONG, STRING, TIMESTAMP, Column, Table

QUOTA_USAGE = Table(
    name="quota_usage",
    comment=(
        "What each client used of a kind of client quota at a broker, and what limits it, per "
        "window of conf's quotas (11 s). Windows are aligned, so that at its end a window's usage "
        "is Kafka's Rate over as many samples; limits are those that stand when it ends. Usage is "
        "what the request log shows: records without the bytes around them"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        Column("event_time", TIMESTAMP, "start of the window"),
        Column(
            "broker_id",
            INT,
            "broker that charges: quotas are each broker's own. Mutations are charged by the "
            "active controller; null: no snapshot has it",
        ),
        *CLIENT[:2],
        Column(
            "quota_type",
            STRING,
            "producer_byte_rate, consumer_byte_rate, request_percentage or "
            "controller_mutation_rate",
        ),
        Column(
            "usage",
            DOUBLE,
            "this client's own: bytes per second, per cent of one thread, or partitions created "
            "and deleted per second",
        ),
        Column(
            "is_estimated",
            BOOLEAN,
            "the broker charges more than usage has: network threads beside IO threads; "
            "partitions of topics that no snapshot had counted, taken as one each; "
            "requests of an API that ingest samples",
        ),
        Column(
            "request_count",
            LONG,
            "requests, each in one row: PRODUCE and FETCH under their bytes, changes of topics "
            "under mutations, all others under request_percentage",
        ),
        Column("throttled_requests", LONG, "those of them that were throttled, by any quota"),
        Column("throttle_time_ms", DOUBLE, "throttle time in their answers, in ms"),
        Column(
            "throttled_by",
            STRING,
            "inferred: of the quotas that could have throttled them the one fullest in this or "
            "the window before; null: none throttled, or no quota known that could",
        ),
        Column(
            "quota_level",
            INT,
            "level of the entity that sets the quota: 1 user and client id, 2 user and default "
            "client id, 3 user, 4 default user and client id, 5 default user and default client "
            "id, 6 default user, 7 client id, 8 default client id; null: none is known",
        ),
        Column("quota", DOUBLE, "limit that applies, in the unit of usage; null: none is known"),
        Column("is_quota_changed", BOOLEAN, "another quota applied during a part of the window"),
        Column("quota_bucket_user", STRING, "user that shares the quota; null: all users"),
        Column(
            "quota_bucket_client_id", STRING, "client id that shares the quota; null: all of them"
        ),
        Column("quota_bucket_usage", DOUBLE, "usage of all clients that share the quota"),
        Column("headroom", DOUBLE, "quota - quota_bucket_usage; null: none is known"),
        Column("is_over", BOOLEAN, "quota_bucket_usage above the quota"),
        Column(
            "enforcement",
            STRING,
            "stock; callback: the broker has a client.quota.callback.class, so that the quota is "
            "not enforced by stock rules; unknown: no snapshot of the broker's configs by then",
        ),
    ),
    key=("cluster_id", "event_time", "broker_id", "principal", "client_id", "quota_type"),
    time="event_time",
    partitioning=("event_date",),
)
