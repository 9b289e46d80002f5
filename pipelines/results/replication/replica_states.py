"""Replicas, racks and selectors at the end of a minute, from snapshots.

Rows of snapshots come with `since` (`as_of.with_since`).
"""

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.results.as_of import HISTORY, histories, in_force

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SELECTOR = "replica.selector.class"
_AT = "minute_end"
_BROKER = ["cluster_id", "broker_id"]


def with_topic(answers: "DataFrame", topics: "DataFrame") -> "DataFrame":
    """Add a topic's id where only its name was told, and its name where only its id was."""
    is_there = ~F.col("is_removed")
    ids = histories(topics, ["cluster_id", "topic"], F.when(is_there, F.col("topic_id")), "since")
    names = histories(topics.where(is_there), ["cluster_id", "topic_id"], F.col("topic"), "since")
    return (
        answers.join(ids, ["cluster_id", "topic"], "left")
        .withColumn("topic_id", F.coalesce("topic_id", in_force(_AT)))
        .drop(HISTORY)
        .join(names, ["cluster_id", "topic_id"], "left")
        .withColumn("topic", F.coalesce("topic", in_force(_AT)))
        .drop(HISTORY)
    )


def with_replicas(
    partitions: "DataFrame", replicas: "DataFrame", brokers: "DataFrame"
) -> "DataFrame":
    """Add the `replicas` that snapshots knew by then; null where they knew none.

    Those are structs of broker_id, rack, is_rack_known, is_leader, is_in_sync, is_offline, and
    seen_at, which is later where the first snapshot tells what was before it.
    """
    changes = F.filter(HISTORY, lambda change: change["since"] < F.col(_AT))
    ids = F.array_distinct(F.transform(changes, lambda change: change["broker_id"]))
    last = F.transform(ids, partial(_last_of, changes))
    current = F.filter(last, lambda change: ~change["is_removed"])
    replicas_now = F.transform(current, _replica)
    return (
        partitions.join(
            _replica_histories(replicas, brokers), ["cluster_id", "topic_id", "partition"], "left"
        )
        .withColumn("replicas", F.when(F.size(replicas_now) > 0, replicas_now))
        .drop(HISTORY)
    )


def _replica_histories(replicas: "DataFrame", brokers: "DataFrame") -> "DataFrame":
    """A row for each partition: changes of its replicas, each with its broker's racks."""
    racks = _racks(brokers).withColumnRenamed(HISTORY, "racks")
    flags = (
        F.coalesce(name, F.lit(False)).alias(name)
        for name in ("is_leader", "is_in_sync", "is_offline", "is_removed")
    )
    seen_at = F.col("event_time").alias("seen_at")
    change = F.struct("since", "broker_id", *flags, "racks", seen_at)
    return (
        replicas.join(racks, _BROKER, "left")
        .groupBy("cluster_id", "topic_id", "partition")
        .agg(F.sort_array(F.collect_list(change)).alias(HISTORY))
    )


def _last_of(changes: Column, broker_id: Column) -> Column:
    own = F.filter(changes, lambda change: change["broker_id"] == broker_id)
    return F.try_element_at(own, F.lit(-1))


def _replica(change: Column) -> Column:
    by_then = F.filter(change["racks"], lambda rack: rack["since"] < F.col(_AT))
    latest = F.try_element_at(by_then, F.lit(-1))["value"]
    return F.struct(
        change["broker_id"].alias("broker_id"),
        latest["rack"].alias("rack"),
        latest.isNotNull().alias("is_rack_known"),
        *(
            change[name].alias(name)
            for name in ("is_leader", "is_in_sync", "is_offline", "seen_at")
        ),
    )


def _racks(brokers: "DataFrame") -> "DataFrame":
    return histories(brokers, _BROKER, F.when(~F.col("is_removed"), F.struct("rack")), "since")


def with_rack(rows: "DataFrame", brokers: "DataFrame") -> "DataFrame":
    """Add the `rack` of a row's broker_id."""
    state = in_force(_AT)
    return (
        rows.join(_racks(brokers), _BROKER, "left").withColumn("rack", state["rack"]).drop(HISTORY)
    )


def with_selector(rows: "DataFrame", configs: "DataFrame") -> "DataFrame":
    """Add the `selector` of a row's leader_id, and whether a snapshot saw its configs by then."""
    of_brokers = configs.where("entity_type = 'broker'").withColumn(
        "leader_id", F.expr("try_cast(entity_name AS INT)")
    )
    is_selector = F.col("config_key") == SELECTOR
    change = F.struct(
        "since",
        F.when(~F.col("is_removed"), F.col("config_value")).alias("value"),
    )
    # Any config of a broker tells that a snapshot saw it.
    seen = of_brokers.groupBy("cluster_id", "leader_id").agg(
        F.min("since").alias("seen_since"),
        F.sort_array(F.collect_list(F.when(is_selector, change))).alias(HISTORY),
    )
    is_seen = F.coalesce(F.col("seen_since") < F.col(_AT), F.lit(False))
    return (
        rows.join(F.broadcast(seen), ["cluster_id", "leader_id"], "left")
        .withColumns({"selector": in_force(_AT), "is_selector_seen": is_seen})
        .drop(HISTORY, "seen_since")
    )
