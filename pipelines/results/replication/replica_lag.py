"""`replica_lag`: how far behind followers are, from their own fetches (KIP-73, SumReplicaLag)."""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.incremental.result import Result, RuleInputs
from quotaflow.schemas.tables.fetches import FETCHES
from quotaflow.schemas.tables.reassignments import LAG_PERIOD_S, REPLICA_LAG

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FIELDS = ("error_code", "high_watermark", "fetch_offset")
_PARTITION = ("topic_id", "topic", "partition")


def result() -> Result:
    """The result as the driver takes it."""
    return Result(
        table=REPLICA_LAG,
        facts=FETCHES,
        bucket_s=LAG_PERIOD_S,
        lookback_s=0,
        is_relevant=is_behind,
        prepare=behind,
        compute=lags,
    )


def is_behind() -> Column:
    """Whether an answer told a follower of partitions in which it is behind.

    An in-sync follower's end is at or past the high watermark: what is committed it has.
    """
    # Of the fields it needs: a scan reads all fields of what a lambda is given.
    fields = F.arrays_zip(*(F.col(f"partitions.{name}").alias(name) for name in _FIELDS))
    return F.col("replica_id").isNotNull() & F.exists(fields, _is_behind)


def behind(fetches: "DataFrame") -> "DataFrame":
    """Such answers, with those partitions alone."""
    return fetches.select(
        *("cluster_id", "event_time", "broker_id", "replica_id"),
        F.filter("partitions", _is_behind).alias("partitions"),
    )


def _is_behind(partition: Column) -> Column:
    is_well = F.coalesce(partition["error_code"], F.lit(0)) == 0
    return is_well & (partition["high_watermark"] > partition["fetch_offset"])


def lags(inputs: RuleInputs) -> "DataFrame":
    """Relevant fetches to rows of the table."""
    offset, end = F.col("of.fetch_offset"), F.col("of.high_watermark")
    period = F.window("event_time", f"{LAG_PERIOD_S} seconds")["start"]
    last = F.max_by(F.struct(offset.alias("offset"), end.alias("end")), "at")
    return (
        inputs.facts.withColumns({"at": F.col("event_time"), "of": F.explode("partitions")})
        .withColumn("event_time", period)
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
            F.max(F.try_subtract(end, offset)).alias("max_lag"),
        )
        .withColumns(
            {
                "event_date": F.to_date("event_time"),
                "last_offset": F.col("last.offset"),
                "high_watermark": F.col("last.end"),
                "lag": F.try_subtract(F.col("last.end"), F.col("last.offset")),
            }
        )
        .select(REPLICA_LAG.column_names)
    )
