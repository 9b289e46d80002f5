"""`quota_usage`: what clients use of their quotas."""

import pyarrow as pa

from quotaflow.schemas.columns import CLIENT, CLUSTER_ID, EVENT_DATE
from quotaflow.schemas.table import BOOLEAN, DOUBLE, INT, LONG, STRING, TIMESTAMP, Column, Table

_USAGE_HISTOGRAM = pa.list_(pa.struct({"bucket": INT, "windows": LONG}))
_USER_WINDOWS = pa.list_(
    pa.struct(
        {
            "quota": DOUBLE,
            "quota_level": INT,
            "is_throttled": BOOLEAN,
            "bucket": INT,
            "windows": LONG,
            "peak_usage": DOUBLE,
            "last_window": TIMESTAMP,
        }
    )
)

QUOTA_USAGE = Table(
    name="quota_usage",
    comment=(
        "What each client used of a kind of client quota at a broker, and what limits it, per "
        "window of conf's quotas (11 s). Windows are aligned, so that at its end a window's usage "
        "is Kafka's Rate over as many samples; limits are those that stand when it ends. Usage is "
        "what the request log shows: records without the bytes around them. Upkeep rolls old "
        "windows up: a row then has those that start in one minute or hour, apart by quota and "
        "by the cause of a throttle. Over any rows sum amount and counts, and take the greatest "
        "peak_usage"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        Column("event_time", TIMESTAMP, "start of the window, or of the minute or hour of windows"),
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
            "this client's own over period_s: bytes per second, per cent of one thread, or "
            "partitions created and deleted per second. Rows of one event_time and period_s add up",
        ),
        Column(
            "is_estimated",
            BOOLEAN,
            "the broker charges more than usage has: network threads beside IO threads; "
            "partitions of topics that no snapshot had counted, taken as one each; "
            "requests of an API that ingest samples, or whose line does not have the bytes "
            "(SHARE_FETCH never does)",
        ),
        Column(
            "request_count",
            LONG,
            "requests, each in one row: PRODUCE, FETCH and SHARE_FETCH under their bytes, changes "
            "of topics under mutations, all others under request_percentage, but those that "
            "brokers exempt from quotas (such as WRITE_TXN_MARKERS)",
        ),
        Column("throttled_requests", LONG, "those of them that were throttled, by any quota"),
        Column("throttle_time_ms", DOUBLE, "throttle time in their answers, in ms"),
        Column(
            "throttled_by",
            STRING,
            "inferred: of the quotas that could have throttled them the one fullest in this or "
            "the window before. A throttle longer than quotas.window_ms is not of request time, "
            "as brokers bound that; one of a bucket with a lower bound is of its bytes, unless "
            "request time was used up. Null: none throttled, or no quota known that could",
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
        Column(
            "quota_bucket_usage",
            DOUBLE,
            "usage of all clients that share the quota; the greatest of the row's windows",
        ),
        Column("headroom", DOUBLE, "quota - quota_bucket_usage; null: none is known"),
        Column("is_over", BOOLEAN, "quota_bucket_usage above the quota"),
        Column(
            "enforcement",
            STRING,
            "stock; callback: the broker has a client.quota.callback.class, so that the quota is "
            "not enforced by stock rules; unknown: no snapshot of the broker's configs by then",
        ),
        Column(
            "amount",
            LONG,
            "what usage is made of: bytes, microseconds of IO threads, or partitions; null in rows "
            "of one window that an earlier version wrote",
        ),
        Column(
            "period_s",
            INT,
            "time that the row covers, in seconds: a window, or all windows that start in its "
            "minute or hour; null as amount",
        ),
        Column(
            "rolled_up_s",
            INT,
            "60 or 3600: the row has the windows that start in this minute or hour; null: it has "
            "one window",
        ),
        Column("windows", LONG, "windows in which the client had requests; null as amount"),
        Column("peak_usage", DOUBLE, "its greatest usage in a window; null as amount"),
        Column(
            "usage_histogram",
            _USAGE_HISTOGRAM,
            "windows by usage, in buckets of OpenTelemetry's exponential histogram of scale 3: "
            "usage above 2^(bucket / 8), up to 2^((bucket + 1) / 8); bucket null: no usage. Null "
            "in rows of one window",
        ),
        Column(
            "user_windows",
            _USER_WINDOWS,
            "windows of the user: its usage at the broker over all client ids but those with a "
            "quota of levels 1 and 2, by bucket as above, by the quota of users that applied, and "
            "by whether this kind of quota throttled requests. One row of a user, broker, kind of "
            "quota and period has all of them; null in the others and in rows of one window",
        ),
        Column(
            "share_requests",
            LONG,
            "consumer_byte_rate: those of request_count that are SHARE_FETCH. Brokers charge their "
            "bytes and log none, so usage is less than was charged; null as amount",
        ),
        Column(
            "is_lower_bound",
            BOOLEAN,
            "quota_bucket_usage is a lower bound, and headroom an upper one: some client of the "
            "bucket sent SHARE_FETCH; null as amount",
        ),
    ),
    key=(
        "cluster_id",
        "event_time",
        "broker_id",
        "principal",
        "client_id",
        "quota_type",
        "quota_level",
        "quota",
        "quota_bucket_user",
        "quota_bucket_client_id",
        "enforcement",
        "throttled_by",
        "throttled_requests",
    ),
    time="event_time",
    partitioning=("event_date",),
    area="quotas",
)
