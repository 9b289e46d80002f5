"""`fetch_sizes`: sizes of answers to fetches, and their limiters, from fetches (KIP-74)."""

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.config import QuotasSection
from quotaflow.pipelines.incremental.result import LookupTable, Result, RuleInputs
from quotaflow.pipelines.results.as_of import with_minute
from quotaflow.pipelines.results.quotas.quota_limits import VALID_FROM
from quotaflow.pipelines.results.reads.fetch_limiters import with_limiters
from quotaflow.pipelines.spark.frames import null_safe
from quotaflow.schemas.tables.fetch_sizes import FETCH_SIZES, LIMITERS
from quotaflow.schemas.tables.fetches import FETCHES
from quotaflow.schemas.tables.snapshots import CLIENT_QUOTAS, CONFIGS
from quotaflow.schemas.tables.topology import TOPICS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BUCKET_S = 60
_KEY = ("cluster_id", "event_time", "broker_id", "principal", "client_id", "replica_id")
_NAME = ("topic", "topic_id", "partition")
_BATCH = ("bytes", "fetch_offset", "partition_max_bytes")
_SUMMED = ("fetches", "bytes", "filled_fetches", "starved_fetches")
_GREATEST = (
    *("max_response_bytes", "max_bytes", "min_bytes", "max_wait_ms"),
    *("partition_max_bytes", "partitions", "bound_bytes"),
)
_SIZES = 31
_MOST_OVERSIZED = 10


def result(conf: QuotasSection) -> Result:
    """The result as the driver takes it."""
    return Result(
        table=FETCH_SIZES,
        facts=FETCHES,
        bucket_s=_BUCKET_S,
        lookback_s=0,
        prepare=answers,
        compute=partial(sizes, conf=conf),
        lookups=(
            LookupTable(CONFIGS, reaches_back=True),
            LookupTable(CLIENT_QUOTAS, VALID_FROM),
            LookupTable(TOPICS, reaches_back=True),
        ),
    )


def answers(fetches: "DataFrame") -> "DataFrame":
    """What the rule reads of fetches."""
    return fetches.select(
        *("cluster_id", "event_time", "broker_id", "principal", "client_id"),
        *("replica_id", "session_partitions", "max_bytes", "min_bytes", "max_wait_ms"),
        *("throttle_time_ms", "error_code", "response_bytes", "partitions", "starved"),
    )


def sizes(inputs: RuleInputs, *, conf: QuotasSection) -> "DataFrame":
    """Fetches to rows of the table."""
    fetches = with_minute(inputs.facts)
    refill_s = conf.rate_period_s - conf.window_ms // 1_000
    lookups = inputs.lookups
    bounded = with_limiters(fetches, lookups["configs"], lookups["client_quotas"], refill_s)
    by_answer = _of_answers(bounded).alias("a")
    by_partition = _of_partitions(fetches, lookups["topics"]).alias("p")
    counted = ("starved_partitions", "max_starved_fetches", "oversized_batches")
    return (
        by_answer.join(by_partition, null_safe(_KEY, "a", "p"), "left")
        .select(
            "a.*",
            *(F.coalesce(f"p.{name}", F.lit(0)).alias(name) for name in counted),
            "p.fairness",
            "p.largest_oversized",
        )
        .withColumn("event_date", F.to_date("event_time"))
        .select(FETCH_SIZES.column_names)
    )


def _of_answers(fetches: "DataFrame") -> "DataFrame":
    size = F.coalesce("response_bytes", F.lit(0))
    power = F.least(F.floor(F.log2(size)), F.lit(_SIZES))
    served = F.filter(_fields(*_NAME, "bytes"), lambda partition: partition["bytes"] > 0)
    first = F.try_element_at(served, F.lit(1))
    first_name = F.struct(*(first[name].alias(name) for name in _NAME))
    limit = F.array_max("partitions.partition_max_bytes")
    # least() leaves out what is not known.
    bound = F.least("max_bytes", F.try_multiply("partition_limit", "session_partitions"))
    sized = fetches.withColumns(
        {
            "size": size,
            "partition_limit": limit,
            "power": F.when(size > 0, power),
            "first": F.when(F.col("is_filled"), first_name),
        }
    )
    # Answers alike are counted together first: what is counted of them by case is then of few.
    alike = sized.groupBy(*_KEY, "limiter", "power", "first").agg(
        F.count(F.lit(1)).alias("fetches"),
        F.sum("size").alias("bytes"),
        F.max("size").alias("max_response_bytes"),
        *(F.max(name).alias(name) for name in ("max_bytes", "min_bytes", "max_wait_ms")),
        F.max("partition_limit").alias("partition_max_bytes"),
        F.max("session_partitions").alias("partitions"),
        F.max(bound).alias("bound_bytes"),
        F.count_if("is_filled").alias("filled_fetches"),
        F.count_if(F.size("starved.partition") > 0).alias("starved_fetches"),
    )
    return (
        alike.repartition(*_KEY)
        .groupBy(*_KEY)
        .agg(
            *(F.sum(name).alias(name) for name in _SUMMED),
            *(F.max(name).alias(name) for name in _GREATEST),
            F.array(
                *(_sum_where(F.col("power") == n, F.col("fetches")) for n in range(_SIZES + 1))
            ).alias("response_sizes"),
            *(
                _sum_where(F.col("limiter") == n, F.col("fetches")).alias(f"{n}_fetches")
                for n in LIMITERS
            ),
            F.size(F.collect_set("first")).alias("first_partitions"),
        )
    )


def _of_partitions(fetches: "DataFrame", topics: "DataFrame") -> "DataFrame":
    """How evenly partitions were served, and what brought more than a limit."""
    over = F.col("bytes") > F.least("max_bytes", "partition_max_bytes")
    oversized = F.when(over, F.struct("bytes", "fetch_offset"))
    alike = (
        _each(fetches)
        .groupBy(*_KEY, *_NAME, "is_starved", oversized.alias("oversized"))
        .agg(F.count(F.lit(1)).alias("times"), F.sum("bytes").alias("size"))
    )
    times, batch = F.col("times"), F.struct("oversized.bytes", *_NAME, "oversized.fetch_offset")
    is_over = F.col("oversized").isNotNull()
    batches = F.when(
        is_over, F.array_repeat(batch, F.least(times, F.lit(_MOST_OVERSIZED)).cast("int"))
    )
    served = (
        alike.repartition(*_KEY)
        .groupBy(*_KEY, *_NAME)
        .agg(
            F.sum("size").alias("size"),
            _sum_where(F.col("is_starved"), times).alias("starved"),
            _sum_where(is_over, times).alias("oversized"),
            _largest(F.flatten(F.collect_list(batches))).alias("largest"),
        )
    )
    square = F.sum("size") * F.sum("size").cast("double")
    return (
        _with_names(served, topics)
        .groupBy(*_KEY)
        .agg(
            F.count_if(F.col("starved") > 0).cast("int").alias("starved_partitions"),
            F.max("starved").alias("max_starved_fetches"),
            F.try_divide(
                square, F.count(F.lit(1)) * F.sum(F.col("size") * F.col("size").cast("double"))
            ).alias("fairness"),
            F.sum("oversized").alias("oversized_batches"),
            _largest(F.flatten(F.collect_list("largest"))).alias("largest_oversized"),
        )
    )


def _each(fetches: "DataFrame") -> "DataFrame":
    """A row for each partition that brought records, and for each that was left out."""
    of_fetch = (*_KEY, "max_bytes")
    answered = fetches.select(*of_fetch, F.explode("partitions").alias("of"))
    left_out = fetches.select(*of_fetch, F.explode("starved").alias("of"))
    nothing = F.lit(None).cast("bigint")
    none = (F.lit(0).cast("bigint"), nothing, nothing)
    return (
        answered.where("of.bytes > 0")
        .select(*of_fetch, F.lit(False).alias("is_starved"), *_limits(*_NAME, *_BATCH))
        .unionByName(
            left_out.select(
                *of_fetch,
                F.lit(True).alias("is_starved"),
                *_limits(*_NAME),
                *(value.alias(name) for name, value in zip(_BATCH, none, strict=True)),
            )
        )
    )


def _limits(*names: str) -> tuple[Column, ...]:
    return tuple(F.col(f"of.{name}").alias(name) for name in names)


def _with_names(served: "DataFrame", topics: "DataFrame") -> "DataFrame":
    """Name the topics of `largest`: fetches since version 13 tell their ids alone."""
    names = topics.groupBy("cluster_id", "topic_id").agg(F.max("topic").alias("name"))
    named = F.transform(
        "largest",
        lambda partition: partition.withField(
            "topic", F.coalesce(partition["topic"], F.col("name"))
        ),
    )
    joined = served.join(F.broadcast(names), ["cluster_id", "topic_id"], "left")
    return joined.withColumn("largest", named)


def _largest(oversized: Column) -> Column:
    return F.slice(F.sort_array(oversized, asc=False), 1, _MOST_OVERSIZED)


def _sum_where(condition: Column, counted: Column) -> Column:
    return F.sum(F.when(condition, counted).otherwise(F.lit(0)))


def _fields(*names: str) -> Column:
    """These fields of the partitions answered: Spark then reads no others."""
    return F.arrays_zip(*(F.col(f"partitions.{name}") for name in names))
