"""`fetch_faults`: faults of answers to consumers, from fetches (KIP-392)."""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.incremental.result import LookupTable, Result, RuleInputs
from quotaflow.pipelines.results.as_of import with_minute, with_since
from quotaflow.pipelines.results.reads.fetch_fault_kinds import with_bounds, with_fault
from quotaflow.pipelines.results.reads.replica_choice import with_leader
from quotaflow.pipelines.results.reads.replica_offsets import (
    PARTITION,
    answered_number,
    counted,
    each_partition,
    gathered,
    is_answered,
)
from quotaflow.pipelines.results.replication.replica_states import with_replicas, with_topic
from quotaflow.pipelines.spark.frames import null_safe
from quotaflow.schemas.tables.fetches import FETCHES
from quotaflow.schemas.tables.read_faults import FETCH_FAULTS
from quotaflow.schemas.tables.topology import BROKERS, REPLICAS, TOPICS
from quotaflow.udfs.rules import fetch_fault as rule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BUCKET_S = 60
_CLIENT = ("principal", "client_id", "broker_id")
_SOFTWARE = ("client_software_name", "client_software_version")
_READ = (
    *("cluster_id", "event_time", *_CLIENT, *_SOFTWARE),
    *("connection_id", "replica_id", "partitions"),
)
_BOUNDS = ("log_start_offset", "end_offset", "leader_log_start_offset", "leader_end_offset")
_NAME = ("cluster_id", "topic", "topic_id", "partition")
_AT = tuple(name for name in PARTITION if name != "minute_end")


def result() -> Result:
    """The result as the driver takes it. Offsets of the minute before are inputs too."""
    return Result(
        table=FETCH_FAULTS,
        facts=FETCHES,
        bucket_s=_BUCKET_S,
        lookback_s=_BUCKET_S,
        is_relevant=is_answered,
        prepare=lambda fetches: fetches.select(*_READ),
        compute=faults,
        lookups=tuple(
            LookupTable(table, reaches_back=True) for table in (REPLICAS, BROKERS, TOPICS)
        ),
    )


def faults(inputs: RuleInputs) -> "DataFrame":
    """Relevant fetches to rows of the table."""
    lookups = {name: with_since(changes) for name, changes in inputs.lookups.items()}
    fetches = with_minute(inputs.facts)
    suspects = _suspects(fetches, lookups["topics"])
    is_some = ~F.col("is_named") | (F.col("answers") >= rule.LOOP_REDIRECTS)
    counted_suspects = _counted(suspects).where(is_some).alias("found")
    bounds = _bounds(fetches, suspects, lookups["topics"]).alias("bounds")
    named = (
        counted_suspects.join(bounds, null_safe(_AT, "found", "bounds"), "left")
        # Of who only named a replica nothing is looked up, whatever else befell its partition.
        .select("found.*", F.when(~F.col("is_named"), F.col("bounds.told")).alias("told"))
        .transform(with_replicas, lookups["replicas"], lookups["brokers"])
        .transform(with_leader)
        .withColumn(
            "leader_in_snapshot",
            F.when(F.col("is_named"), F.col("broker_id")).otherwise(F.col("leader_id")),
        )
        .transform(with_bounds)
        .transform(with_fault)
        .select("*", F.explode(F.array_compact(F.array(*_kinds()))).alias("kind"))
    )
    return _summed(named).select(FETCH_FAULTS.column_names)


def _suspects(fetches: "DataFrame", topics: "DataFrame") -> "DataFrame":
    """Answers to consumers that failed, read past the high watermark, or named a replica."""
    code, offset = F.coalesce("of.error_code", F.lit(0)), F.col("of.fetch_offset")
    named = F.when(code == 0, answered_number("of.preferred_read_replica"))
    return (
        fetches.where("replica_id IS NULL")
        .withColumn("of", F.explode("partitions"))
        # Spark compiles no lambda: to filter the list would be asked of each partition so.
        .where(_is_suspect(F.col("of")))
        .select(
            *("cluster_id", "event_time", "minute_end", *_CLIENT, *_SOFTWARE, "connection_id"),
            *(F.col(f"of.{name}") for name in ("topic", "topic_id", "partition")),
            code.alias("error_code"),
            named.isNotNull().alias("is_named"),
            named.alias("named"),
            F.when(named.isNull(), offset).alias("fetch_offset"),
            F.when(named.isNull(), answered_number("of.high_watermark")).alias("high"),
            offset.alias("asked_from"),
        )
        .transform(with_topic, topics)
    )


def _is_suspect(partition: Column) -> Column:
    is_late = (partition["high_watermark"] >= 0) & (
        partition["fetch_offset"] > partition["high_watermark"]
    )
    return (partition["error_code"] != 0) | (partition["preferred_read_replica"] >= 0) | is_late


def _counted(suspects: "DataFrame") -> "DataFrame":
    """By connection and offset; those that named a replica by connection alone."""
    # A connection has one software: as a part of the key it costs nothing, as a text it would sort.
    of_answer = ("connection_id", "error_code", "is_named", "fetch_offset")
    return suspects.groupBy(*PARTITION, *_CLIENT, *_SOFTWARE, *of_answer).agg(
        F.count(F.lit(1)).alias("answers"),
        F.max("named").alias("preferred_read_replica"),
        F.min("high").alias("high_watermark"),
        F.min("asked_from").alias("least_offset"),
        F.max("asked_from").alias("greatest_offset"),
    )


def _bounds(fetches: "DataFrame", suspects: "DataFrame", topics: "DataFrame") -> "DataFrame":
    """A row per partition and minute: what replicas told in it, and in the one before.

    Only of partitions of which something is to be told: mostly those are few, or none.
    """
    partitions = suspects.where("NOT is_named").select(*_NAME).distinct()
    answers = each_partition(fetches).transform(with_topic, topics).alias("answers")
    relevant = answers.join(
        F.broadcast(partitions.alias("asked")), null_safe(_NAME, "answers", "asked"), "left_semi"
    )
    within = F.struct(F.col("event_time").alias("minute"), F.lit(False).alias("is_before"))
    later = F.col("event_time") + F.make_dt_interval(mins=F.lit(1))
    before = F.struct(later.alias("minute"), F.lit(True).alias("is_before"))
    of_replica = F.struct(
        "broker_id",
        "is_before",
        (F.col("answers_to_followers") > 0).alias("is_leader"),
        F.col("max_log_start_offset").alias("log_start_offset"),
        F.least("min_high_watermark", "min_log_end_offset").alias("least_end"),
        F.greatest("max_high_watermark", "max_log_end_offset").alias("greatest_end"),
    )
    return (
        gathered(counted(relevant))
        .select("*", F.inline(F.array(within, before)))
        .drop("event_time")
        .withColumnRenamed("minute", "event_time")
        .groupBy(*_AT)
        .agg(F.collect_list(of_replica).alias("told"))
    )


def _kinds() -> list[Column]:
    """The fault of an answer, and what the same connection did too often; null for none."""
    is_spin = (F.col("error_code") == rule.OUT_OF_RANGE) & F.col("fetch_offset").isNotNull()
    return [
        F.col("fault"),
        F.when(is_spin & (F.col("answers") >= rule.SPIN_ANSWERS), rule.SPIN),
        F.when(F.col("is_named"), rule.REDIRECT_LOOP),
    ]


def _summed(named: "DataFrame") -> "DataFrame":
    answers_in_range = F.when(F.col("is_held_by_leader"), F.col("answers")).otherwise(F.lit(0))
    return (
        named.groupBy(*_AT, *_CLIENT, F.col("kind").alias("fault"))
        .agg(
            F.sum("answers").alias("answers"),
            F.min("least_offset").alias("min_fetch_offset"),
            F.max("greatest_offset").alias("max_fetch_offset"),
            F.max("preferred_read_replica").alias("preferred_read_replica"),
            *(F.max(name).alias(name) for name in ("leader_id", *_BOUNDS)),
            F.max("client_software_name").alias("client_software_name"),
            F.min("client_software_version").alias("client_software_version"),
            F.sum(F.when(F.col("is_held_by_leader").isNotNull(), answers_in_range)).alias(
                "answers_leader_has"
            ),
        )
        .withColumn("event_date", F.to_date("event_time"))
    )
