"""`replication_traffic`: what followers read of partitions, and clients produced, from requests."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quotaflow.pipelines.results import replica_fetches
from quotaflow.pipelines.results.result import Known, Result
from quotaflow.schemas import tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TABLE = tables.REPLICATION_TRAFFIC
BUCKET_S = 60
_KEY = ("cluster_id", "event_time", *replica_fetches.PAIR[1:], "topic")
_SUMS = (
    "fetches",
    "bytes",
    "leader_throttled_bytes",
    "follower_throttled_bytes",
    "behind_fetches",
    "left_out_fetches",
)


def result() -> Result:
    """The result as the driver takes it."""
    return Result(
        table=_TABLE,
        facts=tables.REQUESTS,
        bucket_s=BUCKET_S,
        lookback_s=0,
        relevant=replica_fetches.relevant,
        compute=traffic,
        runs_forward=True,
        context=replica_fetches.CONTEXT,
    )


def traffic(known: Known) -> "DataFrame":
    """Relevant requests to rows of the table."""
    of = known.context
    seconds = (
        replica_fetches.by_second(known.facts)
        .transform(replica_fetches.with_topic, of["topic_names"], of["topics"])
        .transform(replica_fetches.with_listed, of["throttle_changes"], of["configs"])
    )
    lag = F.col("high_watermark") - F.col("last_fetch_offset")
    empties = F.when(F.col("empty_fetches") > 0, F.struct("empty_fetches", "empty_offset"))
    behind = F.filter("empties", lambda of: of["empty_offset"] < F.col("high_watermark"))
    return (
        seconds.withColumns({"event_time": F.date_trunc("minute", "event_time"), "empty": empties})
        .groupBy(*_KEY)
        .agg(
            *(F.sum(name).alias(name) for name in _SUMS),
            F.min("first_fetch_offset").alias("first_fetch_offset"),
            F.max("last_fetch_offset").alias("last_fetch_offset"),
            F.max("high_watermark").alias("high_watermark"),
            F.collect_list("empty").alias("empties"),
        )
        .withColumns(
            {
                "event_date": F.to_date("event_time"),
                "offset_lag": F.when(lag > 0, lag).when(lag <= 0, F.lit(0)),
                "held_back_fetches": F.aggregate(
                    behind, F.lit(0).cast("bigint"), lambda sum_, of: sum_ + of["empty_fetches"]
                ),
            }
        )
        .select(_TABLE.column_names)
    )
