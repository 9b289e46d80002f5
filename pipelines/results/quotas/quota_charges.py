"""The charges of requests to client quotas, as far as the request log has them.

A broker charges whole requests and responses, and the time of network threads too. It logs the
bytes of records, and the time of IO threads. KIP-13, KIP-124, KIP-599.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.results.as_of import histories, in_force
from quotaflow.pipelines.results.weights import count, weight

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PRODUCED, FETCHED = "producer_byte_rate", "consumer_byte_rate"
REQUEST_TIME, MUTATED = "request_percentage", "controller_mutation_rate"

CLIENT = ["cluster_id", "broker_id", "principal", "client_id", "event_time"]
_MUTATING = ("CREATE_TOPICS", "CREATE_PARTITIONS", "DELETE_TOPICS")
_TOPICS = (
    "ARRAY<STRUCT<`name`: STRING, `errorCode`: INT, `numPartitions`: INT, `count`: INT, "
    "`assignments`: ARRAY<STRUCT<`partitionIndex`: INT>>>>"
)
_BODY = (
    f"`request` STRUCT<`topics`: {_TOPICS}>, `response` STRUCT<`topics`: {_TOPICS}, "
    f"`responses`: {_TOPICS}, `results`: {_TOPICS}>"
)


def is_charged() -> Column:
    """Whether a request counts against client quotas: those of followers do not."""
    return F.col("principal").isNotNull() & F.col("replica_id").isNull()


def charged(requests: "DataFrame") -> "DataFrame":
    """What the rule reads of them: a row for each partition, and one where there is none.

    Only the first row of a request has its times and its weight. Spark compiles no sum over a
    list, and rows are summed anyway.
    """
    own = F.when(F.coalesce("position", F.lit(0)) == 0, weight()).otherwise(F.lit(0))
    return requests.select(
        "*", F.posexplode_outer("partitions.bytes").alias("position", "size")
    ).select(
        "cluster_id",
        "broker_id",
        "principal",
        F.coalesce("client_id", F.lit("")).alias("client_id"),
        "event_time",
        "api",
        (F.coalesce("size", F.lit(0)) * weight()).alias("bytes"),
        _micros("local_time_ms", own),
        _micros("throttle_time_ms", own),
        F.when(F.col("api").isin(*_MUTATING), F.col("body")).alias("body"),
        own.alias("weight"),
    )


def _micros(milliseconds: str, times: Column) -> Column:
    """As whole microseconds, whose sums are exact in any order."""
    micros = F.round(F.coalesce(milliseconds, F.lit(0.0)) * 1_000).cast("bigint")
    return (micros * times).alias(milliseconds.replace("_ms", "_us"))


def charges(
    requests: "DataFrame", topics: "DataFrame", brokers: "DataFrame", rate_period_s: int
) -> "DataFrame":
    """What each client was charged per window and kind of quota, and how its requests fared.

    `amount` is in bytes, microseconds of IO threads, or partitions. A request is charged for its
    time and for what it moves, and counted under the latter where there is one.
    """
    moved = _of_requests(requests, rate_period_s)
    return moved.unionByName(_of_mutations(requests, topics, brokers, rate_period_s))


def _summed(
    charged: "DataFrame", rate_period_s: int, kinds: Mapping[str, tuple[Column, Column]]
) -> "DataFrame":
    """Sums per client and window: one pass for all kinds, and a row for each that was charged.

    `kinds` says what a row is charged by a kind, null for nothing, and if it is counted under it.
    """
    second = F.unix_seconds("event_time")
    start = F.timestamp_seconds(second - second % rate_period_s).alias("event_time")
    sums = {kind: _sums(*charge) for kind, charge in kinds.items()}
    wide = charged.groupBy(*CLIENT[:-1], start).agg(
        *(total.alias(f"{kind}_{name}") for kind in kinds for name, total in sums[kind].items()),
        F.bool_or("is_uncounted").alias("is_uncounted"),
    )
    each = [
        F.struct(
            F.lit(kind).alias("quota_type"),
            *(F.col(f"{kind}_{name}").alias(name) for name in sums[kind]),
            (F.col("is_uncounted") | F.lit(kind == REQUEST_TIME)).alias("is_estimated"),
        )
        for kind in kinds
    ]
    return wide.select(*CLIENT, F.inline(F.array(*each))).where("amount IS NOT NULL")


def _sums(amount: Column, is_counted: Column) -> dict[str, Column]:
    throttle_us = F.when(is_counted, F.col("throttle_time_us")).otherwise(F.lit(0))
    return {
        "amount": F.sum(amount),
        "request_count": count(is_counted),
        "throttled_requests": count(throttle_us > 0),
        "throttle_time_ms": F.sum(throttle_us) / 1_000,
    }


def _of_requests(requests: "DataFrame", rate_period_s: int) -> "DataFrame":
    api, size = F.col("api"), F.col("bytes")
    produces, fetches = api == "PRODUCE", api == "FETCH"
    others = ~api.isin("PRODUCE", "FETCH", *_MUTATING)
    kinds = {
        PRODUCED: (F.when(produces, size), produces),
        FETCHED: (F.when(fetches, size), fetches),
        REQUEST_TIME: (F.col("local_time_us"), others),
    }
    return _summed(requests.withColumn("is_uncounted", weight() > 1), rate_period_s, kinds)


def _of_mutations(
    requests: "DataFrame", topics: "DataFrame", brokers: "DataFrame", rate_period_s: int
) -> "DataFrame":
    counts = histories(
        topics.where("NOT is_removed").withColumnRenamed("topic", "name"),
        ["cluster_id", "name"],
        F.col("partition_count"),
    )
    controllers = histories(
        brokers.where("is_controller AND NOT is_removed"), ["cluster_id"], F.col("broker_id")
    )
    is_uncounted = F.col("name").isNotNull() & F.col("partitions").isNull()
    changed = (
        _each_topic(requests.where(F.col("api").isin(*_MUTATING)))
        .join(counts, ["cluster_id", "name"], "left")
        .withColumn("partitions", _partitions(in_force("event_time")))
        .drop("history", "broker_id")
        .join(controllers, "cluster_id", "left")
        .withColumns(
            {
                "broker_id": in_force("event_time"),
                "is_uncounted": F.col("is_body_lost") | is_uncounted,
                "is_first": F.coalesce(F.col("position") == 0, F.lit(True)),
            }
        )
    )
    mutations = F.when(F.col("name").isNull(), 0).otherwise(F.coalesce("partitions", F.lit(1)))
    return _summed(changed, rate_period_s, {MUTATED: (mutations, F.col("is_first"))})


def _each_topic(requests: "DataFrame") -> "DataFrame":
    """A row per topic that was changed, or one without a name where none was."""
    body = requests.withColumn("body", F.from_json("body", _BODY))
    answered = F.coalesce(
        "body.response.topics", "body.response.responses", "body.response.results"
    )
    changed = F.filter(answered, lambda topic: topic["errorCode"] == 0)
    named = F.filter("body.request.topics", lambda topic: topic["name"] == F.col("name"))
    return (
        body.select(
            *CLIENT,
            "api",
            "throttle_time_us",
            "weight",
            "body",
            answered.isNull().alias("is_body_lost"),
            F.posexplode_outer(changed).alias("position", "changed"),
        )
        .withColumn("name", F.col("changed.name"))
        .withColumn("asked", F.get(named, F.lit(0)))
    )


def _partitions(before: Column) -> Column:
    """How many partitions a change of a topic made or took, null where nothing tells."""
    assigned = F.size("asked.assignments")
    made = F.coalesce(
        *(F.when(n > 0, n) for n in (F.col("changed.numPartitions"), F.col("asked.numPartitions"))),
        F.when(assigned > 0, assigned),
    )
    added = F.coalesce(F.col("asked.count") - before, F.when(assigned > 0, assigned))
    return (
        F.when(F.col("api") == "CREATE_TOPICS", made)
        .when(F.col("api") == "CREATE_PARTITIONS", F.when(added > 0, added))
        .otherwise(before)
    )
