"""`replication_rates`: throttled replication of brokers as Kafka's SimpleRate has it (KIP-73)."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.window import Window

from quotaflow.pipelines.incremental.result import Result, RuleInputs
from quotaflow.pipelines.results.replication import replica_fetches, throttle_configs
from quotaflow.pipelines.results.replication.replication_traffic import BUCKET_S
from quotaflow.pipelines.results.replication.throttle_rates import with_rate
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.throttles import REPLICATION_RATES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WINDOWS_S = 11
"""replication.quota.window.num x replication.quota.window.size.seconds, as Kafka ships."""
_SIDES = ("leader", "follower")
_SIDE = ("cluster_id", "event_time", "broker_id", "side")


def result() -> Result:
    """The result as the driver takes it."""
    return Result(
        table=REPLICATION_RATES,
        facts=REQUESTS,
        bucket_s=BUCKET_S,
        lookback_s=_WINDOWS_S,
        is_relevant=replica_fetches.is_relevant,
        prepare=replica_fetches.relevant_requests,
        compute=rates,
        runs_forward=True,
        lookups=replica_fetches.CONTEXT,
    )


def rates(inputs: RuleInputs) -> "DataFrame":
    """Relevant requests to rows of the table."""
    lookups = inputs.lookups
    states = inputs.cached(
        throttle_configs.histories(lookups["config_alterations"], lookups["configs"])
    )
    seconds = (
        replica_fetches.by_second(inputs.facts)
        .where("follower_id IS NOT NULL AND bytes > 0")
        .transform(replica_fetches.with_topic, lookups["topic_names"], lookups["topics"])
        .transform(replica_fetches.with_listed, states, "inner")
    )
    sides = F.array(
        *(
            F.struct(
                F.col(f"{side}_id").alias("broker_id"),
                F.lit(side).alias("side"),
                F.col(f"{side}_throttled_bytes").alias("size"),
            )
            for side in _SIDES
        )
    )
    charged = (
        seconds.select("cluster_id", "event_time", "first_time", "last_time", F.inline(sides))
        .where("size > 0")
        .groupBy(*_SIDE)
        .agg(
            F.sum("size").alias("bytes"),
            F.min("first_time").alias("first_time"),
            F.max("last_time").alias("last_time"),
        )
        .withColumn("second_end", F.col("event_time") + F.make_dt_interval(secs=F.lit(1)))
    )
    return (
        with_throttled_rate(charged)
        .transform(with_rate, states, lookups["configs"], "event_time", "second_end")
        .withColumns(
            {
                "event_date": F.to_date("event_time"),
                "quota": F.col("rate"),
                "is_over": F.coalesce(F.col("throttled_rate") > F.col("rate"), F.lit(False)),
            }
        )
        .select(REPLICATION_RATES.column_names)
    )


def with_throttled_rate(charged: "DataFrame") -> "DataFrame":
    """Add throttled_rate: bytes of the last 11 s, over the time from the first to the last of them.

    Kafka's SimpleRate begins with the first record too, and takes a second at least.
    """
    side = Window.partitionBy("cluster_id", "broker_id", "side")
    late = side.orderBy(F.unix_seconds("event_time")).rangeBetween(1 - _WINDOWS_S, 0)
    since, until = (F.unix_micros(time) for time in (F.min("first_time").over(late), "last_time"))
    covered_s = F.greatest((until - since) / 1_000_000, F.lit(1.0))
    return charged.withColumn("throttled_rate", F.sum("bytes").over(late) / covered_s)
