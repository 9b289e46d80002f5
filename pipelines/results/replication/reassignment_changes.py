"""`reassignment_changes`: requested replicas and in-sync replicas, from requests' bodies."""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.incremental.result import Result, RuleInputs
from quotaflow.schemas.tables.reassignments import REASSIGNMENT_CHANGES
from quotaflow.schemas.tables.requests import REQUESTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BUCKET_S = 60
_VALUES = ("place", "error_code", "principal", "client_id")
_REASSIGN, _ALTER = "ALTER_PARTITION_REASSIGNMENTS", "ALTER_PARTITION"
_READ = ("cluster_id", "event_time", "broker_id", "api", "body", "principal", "client_id")
_ANSWERED = "partitionIndex: INT, errorCode: INT"
_REASSIGN_BODY = f"""
    request STRUCT<topics: ARRAY<STRUCT<name: STRING, partitions: ARRAY<STRUCT<
        partitionIndex: INT, replicas: ARRAY<INT>
    >>>>>,
    response STRUCT<errorCode: INT, responses: ARRAY<STRUCT<name: STRING, partitions: ARRAY<STRUCT<
        {_ANSWERED}
    >>>>>
"""
_ALTER_BODY = f"""
    request STRUCT<topics: ARRAY<STRUCT<topicId: STRING, partitions: ARRAY<STRUCT<
        partitionIndex: INT, newIsr: ARRAY<INT>, newIsrWithEpochs: ARRAY<STRUCT<brokerId: INT>>
    >>>>>,
    response STRUCT<errorCode: INT, topics: ARRAY<STRUCT<topicId: STRING, partitions: ARRAY<STRUCT<
        {_ANSWERED}
    >>>>>
"""


def result() -> Result:
    """The result as the driver takes it."""
    return Result(
        table=REASSIGNMENT_CHANGES,
        facts=REQUESTS,
        bucket_s=_BUCKET_S,
        lookback_s=0,
        is_relevant=is_moving,
        prepare=lambda requests: requests.select(*_READ),
        compute=changes,
    )


def is_moving() -> Column:
    """Whether a request places replicas or changes who is in sync."""
    return F.col("api").isin(_REASSIGN, _ALTER)


def changes(inputs: RuleInputs) -> "DataFrame":
    """Relevant requests to rows of the table."""
    rows = _reassigned(inputs.facts).unionByName(_in_sync(inputs.facts))
    return (
        rows.withColumn("event_date", F.to_date("event_time"))
        .groupBy(*REASSIGNMENT_CHANGES.key, "event_date")
        .agg(*(F.max(name).alias(name) for name in _VALUES))
        .select(REASSIGNMENT_CHANGES.column_names)
    )


def _reassigned(requests: "DataFrame") -> "DataFrame":
    partitions = _partitions(requests, _REASSIGN, _REASSIGN_BODY, "name", "responses")
    replicas = F.col("of.replicas")
    is_cancelled = F.col("of").isNotNull() & (F.size(F.coalesce(replicas, F.array())) == 0)
    change = F.when(F.col("of").isNull(), "capped").when(is_cancelled, "cancelled")
    return partitions.select(
        *_of_request(),
        F.coalesce(change, F.lit("requested")).alias("change"),
        F.lit(None).cast("string").alias("topic_id"),
        F.col("named").alias("topic"),
        F.col("of.partitionIndex").alias("partition"),
        "error_code",
        F.posexplode_outer(replicas).alias("place", "replica_id"),
    )


def _in_sync(requests: "DataFrame") -> "DataFrame":
    partitions = _partitions(requests, _ALTER, _ALTER_BODY, "topicId", "topics")
    # Before version 2 of the request the ISR is plain broker ids.
    ids = F.transform("of.newIsrWithEpochs", lambda replica: replica["brokerId"])
    return partitions.select(
        *_of_request(),
        F.when(F.col("of").isNull(), "capped").otherwise("in_sync").alias("change"),
        F.col("named").alias("topic_id"),
        F.lit(None).cast("string").alias("topic"),
        F.col("of.partitionIndex").alias("partition"),
        "error_code",
        F.lit(None).cast("int").alias("place"),
        F.explode_outer(F.coalesce(ids, F.col("of.newIsr"))).alias("replica_id"),
    )


def _of_request() -> list[Column]:
    return [F.col(n) for n in ("cluster_id", "event_time", "broker_id", "principal", "client_id")]


def _partitions(
    requests: "DataFrame", api: str, body: str, name: str, answered: str
) -> "DataFrame":
    """A row for each partition asked for, `of` null where the body was capped, with its answer."""
    lines = requests.where(F.col("api") == api).withColumn("body", F.from_json("body", body))
    topics = lines.select(
        *_of_request(), "body", F.explode_outer("body.request.topics").alias("topic")
    )
    each = topics.select(
        "*",
        F.col(f"topic.{name}").alias("named"),
        F.explode_outer("topic.partitions").alias("of"),
    )
    own_topic = F.filter(f"body.response.{answered}", lambda answer: answer[name] == F.col("named"))
    answered_partitions = F.flatten(F.transform(own_topic, lambda topic: topic["partitions"]))
    own = F.filter(
        answered_partitions, lambda one: one["partitionIndex"] == F.col("of.partitionIndex")
    )
    code = F.try_element_at(own, F.lit(1))["errorCode"]
    return each.withColumn("error_code", F.coalesce(code, F.col("body.response.errorCode")))
