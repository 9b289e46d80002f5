"""Replicas, racks and selectors as snapshots knew them at the end of a minute."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quotaflow.pipelines.results.as_of import HISTORY, histories, long_histories, standing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SELECTOR = "replica.selector.class"
_AT = "minute_end"
_BROKER = ["cluster_id", "broker_id"]
_PARTITION = ["cluster_id", "minute_end", "topic_id", "partition"]


def with_topic(answers: "DataFrame", topics: "DataFrame") -> "DataFrame":
    """Add a topic's id where only its name was told, and its name where only its id was."""
    is_there = ~F.col("is_removed")
    ids = histories(topics, ["cluster_id", "topic"], F.when(is_there, F.col("topic_id")))
    names = histories(topics.where(is_there), ["cluster_id", "topic_id"], F.col("topic"))
    return (
        answers.join(ids, ["cluster_id", "topic"], "left")
        .withColumn("topic_id", F.coalesce("topic_id", standing(_AT)))
        .drop(HISTORY)
        .join(names, ["cluster_id", "topic_id"], "left")
        .withColumn("topic", F.coalesce("topic", standing(_AT)))
        .drop(HISTORY)
    )


def replicas(partitions: "DataFrame", of: "Mapping[str, DataFrame]") -> "DataFrame":
    """A row for each partition and minute that snapshots knew by then, with its `replicas`."""
    state = F.struct("is_leader", "is_in_sync", "is_offline")
    states = long_histories(
        of["replicas"],
        ["cluster_id", "topic_id", "partition", "broker_id"],
        F.when(~F.col("is_removed"), state),
    )
    told = [
        F.coalesce(F.col("state")[name], F.lit(False)).alias(name)
        for name in ("is_leader", "is_in_sync", "is_offline")
    ]
    each = (
        partitions.join(states, ["cluster_id", "topic_id", "partition"])
        .withColumn("state", standing(_AT))
        .where("state IS NOT NULL")
        .drop(HISTORY)
        .transform(with_rack, of["brokers"])
    )
    replica = F.struct("broker_id", "rack", "is_rack_known", *told)
    return each.groupBy(*_PARTITION).agg(F.collect_list(replica).alias("replicas"))


def with_rack(rows: "DataFrame", brokers: "DataFrame") -> "DataFrame":
    """Add `rack` of a row's broker_id, and `is_rack_known`: a broker may have none."""
    rack = F.when(~F.col("is_removed"), F.struct("rack"))
    found = standing(_AT)
    return (
        rows.join(histories(brokers, _BROKER, rack), _BROKER, "left")
        .withColumns({"rack": found["rack"], "is_rack_known": found.isNotNull()})
        .drop(HISTORY)
    )


def with_selector(rows: "DataFrame", configs: "DataFrame") -> "DataFrame":
    """Add the `selector` of a row's leader_id, and whether a snapshot saw its configs by then."""
    of_brokers = configs.where("entity_type = 'broker'").withColumn(
        "leader_id", F.expr("try_cast(entity_name AS INT)")
    )
    is_selector = F.col("config_key") == SELECTOR
    change = F.struct(
        F.col("event_time").alias("since"),
        F.when(~F.col("is_removed"), F.col("config_value")).alias("value"),
    )
    # Any config of a broker tells that a snapshot saw it.
    seen = of_brokers.groupBy("cluster_id", "leader_id").agg(
        F.min("event_time").alias("seen_since"),
        F.sort_array(F.collect_list(F.when(is_selector, change))).alias(HISTORY),
    )
    is_seen = F.coalesce(F.col("seen_since") < F.col(_AT), F.lit(False))
    return (
        rows.join(F.broadcast(seen), ["cluster_id", "leader_id"], "left")
        .withColumns({"selector": standing(_AT), "is_selector_seen": is_seen})
        .drop(HISTORY, "seen_since")
    )
