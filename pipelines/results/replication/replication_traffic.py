"""`replication_traffic`: bytes that followers read and clients produced, from requests."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quotaflow.pipelines.incremental.result import Result, RuleInputs
from quotaflow.pipelines.results.replication import replica_fetches, throttle_configs
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.throttles import REPLICATION_TRAFFIC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BUCKET_S = 60
_KEY = ("cluster_id", "event_time", *replica_fetches.PAIR[1:], "topic")
_SUMS = (
    "fetches",
    "bytes",
    "leader_throttled_bytes",
    "follower_throttled_bytes",
    "behind_fetches",
    "omitted_fetches",
)

# An empty answer where an earlier second's high watermark told of more: what comes to be there
# later in the minute was not held back.
_STALLED = """aggregate(told, named_struct('ahead', cast(null as bigint), 'fetches', 0L),
    (so_far, one) -> named_struct('ahead', greatest(so_far.ahead, one.high_watermark),
        'fetches', so_far.fetches + if(one.empty_offset < so_far.ahead, one.empty_fetches, 0L)),
    so_far -> so_far.fetches)"""


def result() -> Result:
    """The result as the driver takes it."""
    return Result(
        table=REPLICATION_TRAFFIC,
        facts=REQUESTS,
        bucket_s=BUCKET_S,
        lookback_s=0,
        is_relevant=replica_fetches.is_relevant,
        prepare=replica_fetches.relevant_requests,
        compute=traffic,
        runs_forward=True,
        lookups=replica_fetches.CONTEXT,
    )


def traffic(inputs: RuleInputs) -> "DataFrame":
    """Relevant requests to rows of the table."""
    lookups = inputs.lookups
    states = throttle_configs.histories(lookups["config_alterations"], lookups["configs"])
    seconds = (
        replica_fetches.by_second(inputs.facts)
        .transform(replica_fetches.with_topic, lookups["topic_names"], lookups["topics"])
        .transform(replica_fetches.with_listed, states)
    )
    lag = F.try_subtract(F.col("high_watermark"), F.col("last_fetch_offset"))
    sample = F.struct("second", "high_watermark", "empty_fetches", "empty_offset")
    return (
        seconds.withColumns(
            {"event_time": F.date_trunc("minute", "event_time"), "second": F.col("event_time")}
        )
        .groupBy(*_KEY)
        .agg(
            *(F.sum(name).alias(name) for name in _SUMS),
            F.min("first_fetch_offset").alias("first_fetch_offset"),
            F.max("last_fetch_offset").alias("last_fetch_offset"),
            F.max("high_watermark").alias("high_watermark"),
            F.sort_array(F.collect_list(sample)).alias("told"),
        )
        .withColumns(
            {
                "event_date": F.to_date("event_time"),
                "offset_lag": F.when(lag > 0, lag).when(lag <= 0, F.lit(0)),
                "stalled_fetches": F.expr(_STALLED),
            }
        )
        .select(REPLICATION_TRAFFIC.column_names)
    )
