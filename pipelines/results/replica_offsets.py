"""`replica_offsets`: where each replica stood, by what fetches and their answers told."""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.results.as_of import with_minute, with_since
from quotaflow.pipelines.results.replica_states import with_topic
from quotaflow.pipelines.results.result import Context, Known, Result
from quotaflow.schemas import tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TABLE = tables.REPLICA_OFFSETS
_BUCKET_S = 60
PARTITION = ("cluster_id", "event_time", "minute_end", "topic", "topic_id", "partition")
_READ = ("cluster_id", "event_time", "broker_id", "replica_id", "partitions")
_BOUNDS = ("log_start_offset", "high_watermark", "log_end_offset")


def result() -> Result:
    """The result as the driver takes it."""
    return Result(
        table=_TABLE,
        facts=tables.FETCHES,
        bucket_s=_BUCKET_S,
        lookback_s=0,
        concerns=is_answered,
        shaped=lambda fetches: fetches.select(*_READ),
        compute=offsets,
        context=(Context(tables.TOPICS, reaches_back=True),),
    )


def is_answered() -> Column:
    """Whether a consumer's or follower's fetch was answered with partitions."""
    # Of one field: to count lists of whole structs all of their fields would be read.
    return F.size("partitions.partition") > 0


def offsets(known: Known) -> "DataFrame":
    """Relevant fetches to rows of the table."""
    topics = with_since(known.context[tables.TOPICS.name])
    return (
        with_partition(with_minute(known.facts), topics)
        .transform(gathered)
        .withColumn("event_date", F.to_date("event_time"))
        .select(_TABLE.column_names)
    )


def with_partition(fetches: "DataFrame", topics: "DataFrame") -> "DataFrame":
    """A row per partition answered, `of`, with its topic named and told by its id where known."""
    return (
        fetches.withColumn("of", F.explode("partitions"))
        .select(
            *("cluster_id", "event_time", "minute_end", "broker_id", "replica_id", "of"),
            *(F.col(f"of.{name}") for name in ("topic", "topic_id", "partition")),
        )
        .transform(with_topic, topics)
    )


def gathered(answers: "DataFrame") -> "DataFrame":
    """What partitions answered told of each replica in each minute."""
    tellings = F.array_compact(F.array(_of_itself(), _of_follower()))
    return (
        answers.select(*PARTITION, F.inline(tellings))
        .groupBy(*PARTITION, "holder")
        .agg(
            F.count_if(~F.col("is_follower")).alias("answers"),
            F.count_if("is_to_follower").alias("answers_to_followers"),
            F.count_if("is_follower").alias("follower_fetches"),
            *(F.min(name).alias(f"min_{name}") for name in _BOUNDS),
            *(F.max(name).alias(f"max_{name}") for name in _BOUNDS),
        )
        .withColumnRenamed("holder", "broker_id")
    )


def _of_itself() -> Column:
    """What a broker tells of its own replica: an answer with an error tells nothing."""
    is_told = F.coalesce("of.error_code", F.lit(0)) == 0
    return F.when(
        is_told,
        _telling(
            F.col("broker_id"),
            is_follower=False,
            log_start_offset=answered_number("of.log_start_offset"),
            high_watermark=answered_number("of.high_watermark"),
        ),
    )


def _of_follower() -> Column:
    """What a follower tells: it fetches from where its log ends."""
    return F.when(
        F.col("replica_id").isNotNull(),
        _telling(
            F.col("replica_id"),
            is_follower=True,
            log_start_offset=answered_number("of.follower_log_start_offset"),
            log_end_offset=answered_number("of.fetch_offset"),
        ),
    )


def _telling(holder: Column, *, is_follower: bool, **bounds: Column) -> Column:
    nothing = F.lit(None).cast("bigint")
    return F.struct(
        holder.alias("holder"),
        F.lit(is_follower).alias("is_follower"),
        (F.lit(not is_follower) & F.col("replica_id").isNotNull()).alias("is_to_follower"),
        *(bounds.get(name, nothing).alias(name) for name in _BOUNDS),
    )


def answered_number(name: str) -> Column:
    """A number of an answer, where it has one: to Kafka one below 0 is none."""
    return F.when(F.col(name) >= 0, F.col(name))
