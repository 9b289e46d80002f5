"""`replica_offsets`: offsets of each replica by minute, from fetches and their answers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.incremental.result import LookupTable, Result, RuleInputs
from quotaflow.pipelines.results.as_of import with_minute, with_since
from quotaflow.pipelines.results.replication.replica_states import with_topic
from quotaflow.schemas.tables.fetches import FETCHES
from quotaflow.schemas.tables.read_faults import REPLICA_OFFSETS
from quotaflow.schemas.tables.topology import TOPICS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BUCKET_S = 60
PARTITION = ("cluster_id", "event_time", "minute_end", "topic", "topic_id", "partition")
_READ = ("cluster_id", "event_time", "broker_id", "replica_id", "partitions")
_BOUNDS = ("log_start_offset", "high_watermark", "log_end_offset")
_COUNTS = ("answers", "answers_to_followers", "follower_fetches")
_OF_BROKER = ("log_start_offset", "high_watermark")
_OF_FOLLOWER = ("follower_log_start_offset", "fetch_offset")


def result() -> Result:
    """The result as the driver takes it."""
    return Result(
        table=REPLICA_OFFSETS,
        facts=FETCHES,
        bucket_s=_BUCKET_S,
        lookback_s=0,
        is_relevant=is_answered,
        prepare=lambda fetches: fetches.select(*_READ),
        compute=offsets,
        lookups=(LookupTable(TOPICS, reaches_back=True),),
    )


def is_answered() -> Column:
    """Whether a consumer's or follower's fetch was answered with partitions."""
    # Of one field: to count lists of whole structs all of their fields would be read.
    return F.size("partitions.partition") > 0


def offsets(inputs: RuleInputs) -> "DataFrame":
    """Relevant fetches to rows of the table."""
    topics = with_since(inputs.lookups[TOPICS.name])
    # Counted first: of few rows the topics are looked up.
    return (
        counted(each_partition(with_minute(inputs.facts)))
        .transform(with_topic, topics)
        .transform(gathered)
        .withColumn("event_date", F.to_date("event_time"))
        .select(REPLICA_OFFSETS.column_names)
    )


def each_partition(fetches: "DataFrame") -> "DataFrame":
    """A row per partition answered, `of`, with its topic as it was told."""
    return fetches.withColumn("of", F.explode("partitions")).select(
        *("cluster_id", "event_time", "minute_end", "broker_id", "replica_id", "of"),
        *(F.col(f"of.{name}") for name in ("topic", "topic_id", "partition")),
    )


def counted(answers: "DataFrame") -> "DataFrame":
    """What was told of each partition in each minute, between a broker and who asked it."""
    # An answer with an error tells nothing of the broker, but what a follower asked all the same.
    is_valid = F.coalesce("of.error_code", F.lit(0)) == 0
    of_broker = {name: F.when(is_valid, answered_number(f"of.{name}")) for name in _OF_BROKER}
    of_follower = {name: answered_number(f"of.{name}") for name in _OF_FOLLOWER}
    return answers.groupBy(*PARTITION, "broker_id", "replica_id").agg(
        F.count_if(is_valid).alias("answers"),
        F.count(F.lit(1)).alias("fetches"),
        *(F.min(column).alias(f"min_{name}") for name, column in (of_broker | of_follower).items()),
        *(F.max(column).alias(f"max_{name}") for name, column in (of_broker | of_follower).items()),
    )


def gathered(offsets_seen: "DataFrame") -> "DataFrame":
    """What partitions answered told of each replica in each minute; takes what `counted` gives."""
    return (
        offsets_seen.select(*PARTITION, F.inline(F.array(_of_itself(), _of_follower())))
        .where("answers > 0 OR follower_fetches > 0")
        .groupBy(*PARTITION, "holder")
        .agg(
            *(F.sum(name).alias(name) for name in _COUNTS),
            *(F.min(f"min_{name}").alias(f"min_{name}") for name in _BOUNDS),
            *(F.max(f"max_{name}").alias(f"max_{name}") for name in _BOUNDS),
        )
        .withColumnRenamed("holder", "broker_id")
    )


def _of_itself() -> Column:
    """What a broker tells of its own replica."""
    is_to_follower = F.col("replica_id").isNotNull()
    return _offset_columns(
        F.col("broker_id"),
        {name: name for name in _OF_BROKER},
        answers=F.col("answers"),
        answers_to_followers=F.when(is_to_follower, F.col("answers")),
    )


def _of_follower() -> Column:
    """What a follower tells: it fetches from where its log ends."""
    return _offset_columns(
        F.col("replica_id"),
        {"log_start_offset": "follower_log_start_offset", "log_end_offset": "fetch_offset"},
        follower_fetches=F.when(F.col("replica_id").isNotNull(), F.col("fetches")),
    )


def _offset_columns(holder: Column, bounds: Mapping[str, str], **counts: Column) -> Column:
    nothing = F.lit(None).cast("bigint")
    none = F.lit(0).cast("bigint")
    return F.struct(
        holder.alias("holder"),
        *(F.coalesce(counts.get(name, none), none).alias(name) for name in _COUNTS),
        *(
            (F.col(f"{side}_{bounds[name]}") if name in bounds else nothing).alias(f"{side}_{name}")
            for name in _BOUNDS
            for side in ("min", "max")
        ),
    )


def answered_number(name: str) -> Column:
    """A number of an answer, where it has one: to Kafka one below 0 is none."""
    return F.when(F.col(name) >= 0, F.col(name))
