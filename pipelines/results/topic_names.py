"""`topic_names`: names and ids of topics in brokers' answers, from the bodies of requests."""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.incremental.result import Result, RuleInputs
from quotaflow.schemas import events
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.traffic import TOPIC_NAMES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BUCKET_S = 60
NAMING_APIS = ("METADATA", "DESCRIBE_TOPIC_PARTITIONS", "CREATE_TOPICS")
_BODY = (
    "`request` STRUCT<`validateOnly`: BOOLEAN>, "
    "`response` STRUCT<`topics`: ARRAY<STRUCT<`name`: STRING, `topicId`: STRING>>>"
)


def result() -> Result:
    """The result as the driver takes it."""
    return Result(
        table=TOPIC_NAMES,
        facts=REQUESTS,
        bucket_s=_BUCKET_S,
        lookback_s=0,
        is_relevant=names_topics,
        prepare=lambda requests: requests.select("cluster_id", "event_time", "body"),
        compute=names,
    )


def names_topics() -> Column:
    """Whether a request is answered with topics by name and id."""
    return F.col("api").isin(*NAMING_APIS)


def names(inputs: RuleInputs) -> "DataFrame":
    """Relevant requests to rows of the table.

    A topic that was only asked whether it could be made is answered with an id that never will be.
    """
    topics = F.col("body.response.topics")
    has_both = F.filter(
        topics,
        lambda topic: topic["name"].isNotNull() & (topic["topicId"] != events.NO_TOPIC_ID),
    )
    is_real = ~F.coalesce("body.request.validateOnly", F.lit(False))
    return (
        inputs.facts.withColumn("body", F.from_json("body", _BODY))
        .where(is_real)
        .select(
            "cluster_id",
            F.date_trunc("minute", "event_time").alias("event_time"),
            topics.isNull().alias("is_capped"),
            F.explode_outer(has_both).alias("told"),
        )
        .where(F.col("is_capped") | F.col("told").isNotNull())
        .groupBy("cluster_id", "event_time", F.col("told.topicId").alias("topic_id"))
        .agg(F.max("told.name").alias("topic"), F.count(F.lit(1)).alias("requests"))
        .withColumn("event_date", F.to_date("event_time"))
        .select(TOPIC_NAMES.column_names)
    )
