"""`fetch_sizes`: how much fetches brought at once, and what bounded it, from fetches (KIP-74)."""

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.equality import null_safe
from quotaflow.pipelines.quota_sections import Quotas
from quotaflow.pipelines.results.as_of import with_minute
from quotaflow.pipelines.results.fetch_limiters import with_limiters
from quotaflow.pipelines.results.quota_limits import VALID_FROM
from quotaflow.pipelines.results.result import Context, Known, Result
from quotaflow.schemas import tables
from quotaflow.schemas.fetch_size_tables import LIMITERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TABLE = tables.FETCH_SIZES
_BUCKET_S = 60
_KEY = ("cluster_id", "event_time", "broker_id", "principal", "client_id", "replica_id")
_NAME = ("topic", "topic_id", "partition")
_SIZES = 31
_MOST_OVERSIZED = 10


def result(conf: Quotas) -> Result:
    """The result as the driver takes it."""
    return Result(
        table=_TABLE,
        facts=tables.FETCHES,
        bucket_s=_BUCKET_S,
        lookback_s=0,
        relevant=answers,
        compute=partial(sizes, conf=conf),
        context=(
            Context(tables.CONFIGS, reaches_back=True),
            Context(tables.CLIENT_QUOTAS, VALID_FROM),
            Context(tables.TOPICS, reaches_back=True),
        ),
    )


def answers(fetches: "DataFrame") -> "DataFrame":
    """What the rule reads of fetches."""
    return fetches.select(
        *("cluster_id", "event_time", "record_time", "broker_id", "principal", "client_id"),
        *("replica_id", "session_partitions", "max_bytes", "min_bytes", "max_wait_ms"),
        *("throttle_time_ms", "error_code", "response_bytes", "partitions", "starved"),
    )


def sizes(known: Known, *, conf: Quotas) -> "DataFrame":
    """Fetches to rows of the table."""
    fetches = with_minute(known.facts)
    refill_s = conf.span_s - conf.window_ms // 1_000
    of = known.context
    bounded = with_limiters(fetches, of["configs"], of["client_quotas"], refill_s)
    # One shuffle serves what is counted of answers, and of their partitions.
    together = bounded.repartition(*_KEY)
    by_answer = _of_answers(together).alias("a")
    by_partition = _of_partitions(together, of["topics"]).alias("p")
    counted = ("starved_partitions", "most_starved_fetches", "oversized_batches")
    return (
        by_answer.join(by_partition, null_safe(_KEY, "a", "p"), "left")
        .select(
            "a.*",
            *(F.coalesce(f"p.{name}", F.lit(0)).alias(name) for name in counted),
            "p.fairness",
            "p.largest_oversized",
        )
        .withColumn("event_date", F.to_date("event_time"))
        .select(_TABLE.column_names)
    )


def _of_answers(fetches: "DataFrame") -> "DataFrame":
    size = F.coalesce("response_bytes", F.lit(0))
    power = F.least(F.floor(F.log2(size)), F.lit(_SIZES))
    first = F.filter("partitions", lambda of: of["bytes"] > 0)
    first_name = F.struct(*(F.try_element_at(first, F.lit(1))[name].alias(name) for name in _NAME))
    limit = F.array_max(F.transform("partitions", lambda of: of["partition_max_bytes"]))
    # least() leaves out what is not known.
    bound = F.least("max_bytes", F.col("partition_limit") * F.col("session_partitions"))
    return (
        fetches.withColumns({"partition_limit": limit, "power": F.when(size > 0, power)})
        .groupBy(*_KEY)
        .agg(
            F.count(F.lit(1)).alias("fetches"),
            F.sum(size).alias("bytes"),
            F.max(size).alias("max_response_bytes"),
            F.array(*(F.count_if(F.col("power") == n) for n in range(_SIZES + 1))).alias(
                "response_sizes"
            ),
            *(F.count_if(F.col("limiter") == n).alias(f"{n}_fetches") for n in LIMITERS),
            *(F.max(name).alias(name) for name in ("max_bytes", "min_bytes", "max_wait_ms")),
            F.max("partition_limit").alias("partition_max_bytes"),
            F.max("session_partitions").alias("partitions"),
            F.max(bound).alias("bound_bytes"),
            F.count_if("is_filled").alias("filled_fetches"),
            F.count_distinct(F.when(F.col("is_filled"), first_name))
            .cast("int")
            .alias("first_partitions"),
            F.count_if(F.size("starved") > 0).alias("starved_fetches"),
        )
    )


def _of_partitions(fetches: "DataFrame", topics: "DataFrame") -> "DataFrame":
    """How evenly partitions were served, and what brought more than a limit."""
    answered = F.transform(
        F.filter("partitions", lambda of: of["bytes"] > 0), lambda of: _served(of, is_starved=False)
    )
    starved = F.transform("starved", lambda of: _served(of, is_starved=True))
    nothing = F.filter(answered, lambda _: F.lit(False))
    each = fetches.select(
        *_KEY, "max_bytes", F.inline(F.concat(answered, F.coalesce(starved, nothing)))
    )
    over = F.col("size") > F.least("max_bytes", "partition_max_bytes")
    oversized = F.struct(F.col("size").alias("bytes"), *_NAME, "fetch_offset")
    served = each.groupBy(*_KEY, *_NAME).agg(
        F.sum("size").alias("size"),
        F.count_if("is_starved").alias("starved"),
        F.count_if(over).alias("oversized"),
        _largest(F.collect_list(F.when(over, oversized))).alias("largest"),
    )
    square = F.sum("size") * F.sum("size").cast("double")
    return (
        _with_names(served, topics)
        .groupBy(*_KEY)
        .agg(
            F.count_if(F.col("starved") > 0).cast("int").alias("starved_partitions"),
            F.max("starved").alias("most_starved_fetches"),
            F.try_divide(
                square, F.count(F.lit(1)) * F.sum(F.col("size") * F.col("size").cast("double"))
            ).alias("fairness"),
            F.sum("oversized").alias("oversized_batches"),
            _largest(F.flatten(F.collect_list("largest"))).alias("largest_oversized"),
        )
    )


def _with_names(served: "DataFrame", topics: "DataFrame") -> "DataFrame":
    """Name the topics of `largest`: fetches since version 13 tell their ids alone."""
    names = topics.groupBy("cluster_id", "topic_id").agg(F.max("topic").alias("name"))
    named = F.transform(
        "largest", lambda of: of.withField("topic", F.coalesce(of["topic"], F.col("name")))
    )
    joined = served.join(F.broadcast(names), ["cluster_id", "topic_id"], "left")
    return joined.withColumn("largest", named)


def _served(of: Column, *, is_starved: bool) -> Column:
    none = F.lit(None).cast("bigint")
    return F.struct(
        *(of[name].alias(name) for name in _NAME),
        F.lit(is_starved).alias("is_starved"),
        (F.lit(0).cast("bigint") if is_starved else of["bytes"]).alias("size"),
        (none if is_starved else of["fetch_offset"]).alias("fetch_offset"),
        (none if is_starved else of["partition_max_bytes"]).alias("partition_max_bytes"),
    )


def _largest(oversized: Column) -> Column:
    return F.slice(F.sort_array(oversized, asc=False), 1, _MOST_OVERSIZED)
