"""`traffic`: bytes produced and consumed per principal, client, topic and minute, from requests."""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.incremental.result import Result, RuleInputs
from quotaflow.pipelines.results.weights import weight
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.traffic import TRAFFIC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BUCKET_S = 60
_CLIENT = ("cluster_id", "broker_id", "principal", "client_id")


def result() -> Result:
    """The result as the driver takes it."""
    return Result(
        table=TRAFFIC,
        facts=REQUESTS,
        bucket_s=_BUCKET_S,
        lookback_s=0,
        is_relevant=is_transfer,
        prepare=transfers,
        compute=traffic,
    )


def is_transfer() -> Column:
    """Whether a client wrote or read; followers' fetches are no client's."""
    return F.col("api").isin("PRODUCE", "FETCH") & F.col("replica_id").isNull()


def transfers(requests: "DataFrame") -> "DataFrame":
    """What the rule reads of them."""
    return requests.select(
        *_CLIENT,
        "event_time",
        "api",
        "rack_id",
        "partitions",
        weight().alias("weight"),
    )


def traffic(inputs: RuleInputs) -> "DataFrame":
    """Requests to rows of the table.

    A partition that was refused moved nothing; without acks (acks=0) no refusal is ever told.
    """
    each = inputs.facts.select("*", F.explode("partitions").alias("of")).where(
        (F.col("of.bytes") > 0) & (F.coalesce("of.error_code", F.lit(0)) == 0)
    )
    minute = F.date_trunc("minute", "event_time").alias("event_time")
    direction = F.when(F.col("api") == "PRODUCE", "produced").otherwise("consumed")
    return (
        each.groupBy(
            *_CLIENT,
            minute,
            direction.alias("direction"),
            F.col("of.topic").alias("topic"),
            F.col("of.topic_id").alias("topic_id"),
            F.col("rack_id").alias("client_rack"),
        )
        .agg(F.sum(F.col("of.bytes") * weight()).alias("bytes"))
        .withColumn("event_date", F.to_date("event_time"))
        .select(TRAFFIC.column_names)
    )
