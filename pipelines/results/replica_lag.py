"""`replica_lag`: how far behind followers are, from their own fetches (KIP-73, SumReplicaLag)."""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.results.result import Known, Result
from quotaflow.schemas import tables
from quotaflow.schemas.reassignment_tables import LAG_SPAN_S

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TABLE = tables.REPLICA_LAG
_IS_BEHIND = "coalesce(of.error_code, 0) = 0 AND of.high_watermark > of.fetch_offset"
_PARTITION = ("topic_id", "topic", "partition")


def result() -> Result:
    """The result as the driver takes it."""
    return Result(
        table=_TABLE,
        facts=tables.FETCHES,
        bucket_s=LAG_SPAN_S,
        lookback_s=0,
        concerns=is_behind,
        shaped=behind,
        compute=lags,
    )


def is_behind() -> Column:
    """Whether an answer told a follower of partitions in which it is behind.

    An in-sync follower's end is at or past the high watermark: what is committed it has.
    """
    return F.expr(f"replica_id IS NOT NULL AND exists(partitions, of -> {_IS_BEHIND})")


def behind(fetches: "DataFrame") -> "DataFrame":
    """Such answers, with those partitions alone."""
    return fetches.select(
        *("cluster_id", "event_time", "broker_id", "replica_id"),
        F.expr(f"filter(partitions, of -> {_IS_BEHIND})").alias("partitions"),
    )


def lags(known: Known) -> "DataFrame":
    """Relevant fetches to rows of the table."""
    offset, end = F.col("of.fetch_offset"), F.col("of.high_watermark")
    span = F.window("event_time", f"{LAG_SPAN_S} seconds")["start"]
    last = F.max_by(F.struct(offset.alias("offset"), end.alias("end")), "at")
    return (
        known.facts.withColumns({"at": F.col("event_time"), "of": F.explode("partitions")})
        .withColumn("event_time", span)
        .groupBy(
            *("cluster_id", "event_time", "broker_id", "replica_id"),
            *(F.col(f"of.{name}").alias(name) for name in _PARTITION),
        )
        .agg(
            F.count(F.lit(1)).alias("fetches"),
            F.sum(F.coalesce("of.bytes", F.lit(0))).alias("bytes"),
            F.min(offset).alias("first_offset"),
            F.max("at").alias("last_time"),
            last.alias("last"),
            F.max(end - offset).alias("max_lag"),
        )
        .withColumns(
            {
                "event_date": F.to_date("event_time"),
                "last_offset": F.col("last.offset"),
                "high_watermark": F.col("last.end"),
                "lag": F.col("last.end") - F.col("last.offset"),
            }
        )
        .select(_TABLE.column_names)
    )
