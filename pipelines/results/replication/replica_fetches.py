"""Bytes that followers read from leaders, and that clients produced, by partition and second.

The lists of a second give the bytes that a throttle counts (KIP-73). The second is that of
the leader's clock: a follower writes no line of its own.
"""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.incremental.result import LookupTable
from quotaflow.pipelines.results import config_alterations, topic_names
from quotaflow.pipelines.results.as_of import HISTORY, with_since
from quotaflow.pipelines.results.replication.throttle_configs import LISTS
from quotaflow.pipelines.results.weights import weight
from quotaflow.schemas.configs import TOPIC
from quotaflow.schemas.tables.config_alterations import CONFIG_ALTERATIONS
from quotaflow.schemas.tables.snapshots import CONFIGS
from quotaflow.schemas.tables.topology import TOPICS
from quotaflow.schemas.tables.traffic import TOPIC_NAMES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CONTEXT = (
    LookupTable(CONFIG_ALTERATIONS, valid_from=None),
    LookupTable(TOPIC_NAMES, valid_from=None),
    LookupTable(CONFIGS, reaches_back=True),
    LookupTable(TOPICS, reaches_back=True),
)
"""What the rules of this module look up. What results tell follows from requests that are facts of
these too, so that a change touches what comes after it (`Result.runs_forward`)."""

PAIR = ("cluster_id", "leader_id", "follower_id", "topic_id", "partition")
_SECOND = ("cluster_id", "event_time", *PAIR[1:], "topic")
_IS_REPLICA = "api = 'FETCH' and replica_id is not null"
_IS_MOVING = f"({_IS_REPLICA}) or api = 'PRODUCE'"


def is_relevant() -> Column:
    """Whether a request is of replication or produces, or tells lists, or names of topics."""
    return F.expr(_IS_MOVING) | F.col("api").isin(
        *config_alterations.RESOURCES, *topic_names.NAMING_APIS
    )


def relevant_requests(requests: "DataFrame") -> "DataFrame":
    """Those requests, with the partitions that replication or a producer named."""
    return requests.select(
        *("cluster_id", "event_time", "api"),
        F.col("broker_id").alias("leader_id"),
        F.col("replica_id").alias("follower_id"),
        F.when(F.expr(_IS_MOVING), F.col("partitions")).alias("partitions"),
        F.when(F.expr(_IS_REPLICA), F.col("forgotten")).alias("forgotten"),
        weight().alias("weight"),
    )


def by_second(facts: "DataFrame") -> "DataFrame":
    """One row per second of a leader, follower (null: produced) and partition.

    A fetch tells of partitions that it names, is answered with, or takes out of its session.
    """
    # A client may claim to be a follower and ask from any offset: then there is no lag.
    lag = F.try_subtract(F.col("high_watermark"), F.col("fetch_offset"))
    each = _named(facts).unionByName(_forgotten(facts))
    came = F.when(F.col("bytes") > 0, F.col("at"))
    return each.groupBy(*_SECOND).agg(
        F.sum("fetches").alias("fetches"),
        F.sum("bytes").alias("bytes"),
        F.min(came).alias("first_time"),
        F.max(came).alias("last_time"),
        F.min("fetch_offset").alias("first_fetch_offset"),
        F.max("fetch_offset").alias("last_fetch_offset"),
        F.max("high_watermark").alias("high_watermark"),
        F.count_if(lag > 0).alias("behind_fetches"),
        F.count_if("is_empty").alias("empty_fetches"),
        F.max(F.when(F.col("is_empty"), F.col("fetch_offset"))).alias("empty_offset"),
        F.sum("left_out").alias("omitted_fetches"),
    )


def _named(facts: "DataFrame") -> "DataFrame":
    size, is_well = F.coalesce("of.bytes", F.lit(0)), F.coalesce("of.error_code", F.lit(0)) == 0
    is_requested = (F.col("api") == "FETCH") & F.col("of.in_request")
    return facts.withColumn("of", F.explode("partitions")).select(
        *_of_pair(),
        weight().alias("fetches"),
        (F.when(is_well, size).otherwise(F.lit(0)) * weight()).alias("bytes"),
        "of.fetch_offset",
        "of.high_watermark",
        (is_requested & (size == 0) & is_well).alias("is_empty"),
        F.lit(0).alias("left_out"),
    )


def _forgotten(facts: "DataFrame") -> "DataFrame":
    nothing, none = F.lit(0).cast("bigint"), F.lit(None).cast("bigint")
    return facts.withColumn("of", F.explode("forgotten")).select(
        *_of_pair(),
        nothing.alias("fetches"),
        nothing.alias("bytes"),
        none.alias("fetch_offset"),
        none.alias("high_watermark"),
        F.lit(False).alias("is_empty"),
        F.lit(1).alias("left_out"),
    )


def _of_pair() -> list[Column]:
    return [
        *(F.col(name) for name in ("cluster_id", "leader_id", "follower_id")),
        F.date_trunc("second", "event_time").alias("event_time"),
        F.col("event_time").alias("at"),
        *(F.col(f"of.{name}") for name in ("topic", "topic_id", "partition")),
    ]


def topic_ids(named_topics: "DataFrame", topics: "DataFrame") -> "DataFrame":
    """One row per topic id with its topic, and `since` when that was told; it never changes.

    `told` are rows of topic_names, `topics` those of snapshots.
    """
    columns = ("cluster_id", "topic_id", "topic", "since")
    of_snapshots = with_since(topics).select(*columns)
    return (
        named_topics.withColumnRenamed("event_time", "since")
        .select(*columns)
        .unionByName(of_snapshots)
        .where("topic_id is not null")
        .groupBy("cluster_id", "topic_id")
        .agg(F.max("topic").alias("topic"), F.min("since").alias("since"))
    )


def with_topic(seconds: "DataFrame", named_topics: "DataFrame", topics: "DataFrame") -> "DataFrame":
    """Add the name of a topic, if anybody had told it by the end of that second's minute."""
    names = topic_ids(named_topics, topics).withColumnRenamed("topic", "name")
    is_known = F.date_trunc("minute", "since") <= F.col("event_time")
    return (
        seconds.join(F.broadcast(names), ["cluster_id", "topic_id"], "left")
        .withColumn("topic", F.coalesce("topic", F.when(is_known, F.col("name"))))
        .drop("name", "since")
    )


def with_listed(seconds: "DataFrame", states: "DataFrame", how: str = "left") -> "DataFrame":
    """Add leader_throttled_bytes and follower_throttled_bytes: what the lists of a topic held.

    `states` are the histories of configs of throttles. With `how` inner, only of topics that ever
    had a list.
    """
    of_topics = states.where(F.col("entity_type") == TOPIC)
    wide = of_topics.groupBy("cluster_id", F.col("entity_name").alias("topic")).agg(
        *(
            F.first(F.when(F.col("config_key") == key, F.col(HISTORY)), True).alias(side)
            for side, key in LISTS.items()
        )
    )
    end = F.col("event_time") + F.make_dt_interval(secs=F.lit(1))
    listed = {
        f"{side}_throttled_bytes": F.when(_is_listed(side), F.col("bytes")).otherwise(F.lit(0))
        for side in LISTS
    }
    return (
        seconds.join(F.broadcast(wide), ["cluster_id", "topic"], how)
        .withColumn("second_end", end)
        .withColumns(listed)
        .drop(*LISTS, "second_end")
    )


def _is_listed(side: str) -> Column:
    by_then = F.filter(side, lambda state: state["since"] < F.col("second_end"))
    value = F.trim(F.coalesce(F.try_element_at(by_then, F.lit(-1))["value"], F.lit("")))
    entry = F.concat_ws(":", "partition", f"{side}_id")
    is_entry = F.array_contains(F.split(value, ","), entry)
    return F.col("follower_id").isNotNull() & ((value == "*") | is_entry)
