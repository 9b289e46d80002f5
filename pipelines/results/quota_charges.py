"""What requests are charged to client quotas, as far as the request log shows it.

The broker charges whole requests and responses, and the time of network threads too; what it logs
is the bytes of records, and the time of IO threads. KIP-13, KIP-124, KIP-599.
"""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.results.as_of import histories, standing

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


def charged(requests: "DataFrame") -> "DataFrame":
    """Requests that count against client quotas: those of followers do not."""
    add = F.aggregate(
        F.col("partitions.bytes"),
        F.lit(0).cast("bigint"),
        lambda total, size: total + F.coalesce(size, F.lit(0).cast("bigint")),
    )
    return requests.where("principal IS NOT NULL AND replica_id IS NULL").select(
        "cluster_id",
        "broker_id",
        "principal",
        F.coalesce("client_id", F.lit("")).alias("client_id"),
        "event_time",
        "record_time",
        "api",
        F.coalesce(add, F.lit(0).cast("bigint")).alias("bytes"),
        _micros("local_time_ms"),
        _micros("throttle_time_ms"),
        F.when(F.col("api").isin(*_MUTATING), F.col("body")).alias("body"),
    )


def _micros(milliseconds: str) -> Column:
    """As whole microseconds, whose sums are exact in any order."""
    micros = F.round(F.coalesce(milliseconds, F.lit(0.0)) * 1_000).cast("bigint")
    return micros.alias(milliseconds.replace("_ms", "_us"))


def charges(requests: "DataFrame", topics: "DataFrame", brokers: "DataFrame") -> "DataFrame":
    """What each request is charged by kind of quota: `amount` in bytes, microseconds, partitions.

    A request has a charge for its time, and one for what it moves; the latter `is_counted` where
    there is one, so that requests are told once.
    """
    return _of_requests(requests).unionByName(_of_mutations(requests, topics, brokers))


def _charge(quota_type: str, amount: Column, is_counted: Column) -> Column:
    return F.struct(
        F.lit(quota_type).alias("quota_type"),
        amount.alias("amount"),
        is_counted.alias("is_counted"),
    )


def _of_requests(requests: "DataFrame") -> "DataFrame":
    api, yes = F.col("api"), F.lit(True)
    moved = F.when(api == "PRODUCE", _charge(PRODUCED, F.col("bytes"), yes)).when(
        api == "FETCH", _charge(FETCHED, F.col("bytes"), yes)
    )
    moves = api.isin("PRODUCE", "FETCH", *_MUTATING)
    time = _charge(REQUEST_TIME, F.col("local_time_us"), ~moves)
    each = F.explode(F.array_compact(F.array(moved, time))).alias("charge")
    return requests.select(*CLIENT, "throttle_time_us", each).select(
        *CLIENT,
        "throttle_time_us",
        "charge.*",
        (F.col("charge.quota_type") == REQUEST_TIME).alias("is_estimated"),
    )


def _of_mutations(requests: "DataFrame", topics: "DataFrame", brokers: "DataFrame") -> "DataFrame":
    counts = histories(
        topics.where("NOT is_removed").withColumnRenamed("topic", "name"),
        ["cluster_id", "name"],
        F.col("partition_count"),
    )
    controllers = histories(
        brokers.where("is_controller AND NOT is_removed"), ["cluster_id"], F.col("broker_id")
    )
    partitions = F.col("partitions")
    return (
        _each_topic(requests.where(F.col("api").isin(*_MUTATING)))
        .join(counts, ["cluster_id", "name"], "left")
        .withColumn("partitions", _partitions(standing("event_time")))
        .drop("history", "broker_id")
        .join(controllers, "cluster_id", "left")
        .withColumns(
            {
                "broker_id": standing("event_time"),
                "quota_type": F.lit(MUTATED),
                "amount": F.when(F.col("name").isNull(), 0)
                .otherwise(F.coalesce(partitions, F.lit(1)))
                .cast("bigint"),
                "is_counted": F.coalesce(F.col("position") == 0, F.lit(True)),
                "is_estimated": F.col("is_body_lost")
                | (F.col("name").isNotNull() & partitions.isNull()),
            }
        )
        .select(*CLIENT, "throttle_time_us", "quota_type", "amount", "is_counted", "is_estimated")
    )


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
