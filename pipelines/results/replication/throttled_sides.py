"""Both sides of every replication that a list names or a move needs, by minute (KIP-73)."""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.incremental.result import RuleInputs
from quotaflow.pipelines.results.replication.listed_replicas import (
    ENTRY,
    UNLISTED,
    WILDCARD,
    listed,
    lists,
)
from quotaflow.pipelines.results.replication.moving_partitions import moving
from quotaflow.pipelines.results.replication.replica_fetches import topic_ids
from quotaflow.pipelines.results.replication.throttle_configs import RATES
from quotaflow.schemas.configs import BROKER
from quotaflow.udfs.rules.replication_throttle import FOLLOWER, LEADER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

_MINUTE = ["cluster_id", "event_time"]
_PARTITION = [*_MINUTE, "topic", "partition"]
_PAIR = [*_PARTITION, "side", "broker_id", "peer_broker_id"]
_SUMS = ("bytes", "behind_fetches", "stalled_fetches", "omitted_fetches")


def pairs(traffic: "DataFrame") -> "DataFrame":
    """Both sides of what followers read in each minute, by rows of replication_traffic."""
    sides = F.array(
        F.struct(F.lit(LEADER).alias("side"), *_ids("leader_id", "follower_id")),
        F.struct(F.lit(FOLLOWER).alias("side"), *_ids("follower_id", "leader_id")),
    )
    return (
        traffic.where("follower_id IS NOT NULL AND topic IS NOT NULL AND fetches > 0")
        .select("*", F.inline(sides))
        .groupBy(*_PAIR)
        .agg(
            F.max("topic_id").alias("topic_id"),
            F.max("offset_lag").alias("offset_lag"),
            *(F.sum(name).alias(name) for name in _SUMS),
        )
    )


def _ids(broker: str, peer: str) -> tuple[Column, Column]:
    return F.col(broker).alias("broker_id"), F.col(peer).alias("peer_broker_id")


def sides(
    minutes: "DataFrame", traffic: "DataFrame", states: "DataFrame", inputs: RuleInputs
) -> "DataFrame":
    """A row per side of what is listed or moved, and per broker and side that may have a rate.

    `traffic` are `pairs`, `states` the histories of configs of throttles. `is_listed` is null where
    nobody told.
    """
    lookups, list_histories = inputs.lookups, lists(states)
    named = inputs.cached(listed(minutes, list_histories))
    replicas = inputs.cached(_of_entries(named, traffic).unionByName(_of_wildcards(named, traffic)))
    moves = inputs.cached(_moves(minutes, lookups))
    unlisted = _unlisted(moves, traffic, replicas, list_histories, lookups["configs"])
    partitions = moves.select(*_PARTITION, F.lit(True).alias("is_moved")).distinct()
    return (
        replicas.unionByName(unlisted, allowMissingColumns=True)
        .join(partitions, _PARTITION, "left")
        .withColumn("is_moving", F.coalesce("is_moved", F.lit(False)))
        .drop("is_moved")
        .unionByName(_rated(minutes, replicas, traffic, lookups), allowMissingColumns=True)
    )


def _of_entries(named: "DataFrame", traffic: "DataFrame") -> "DataFrame":
    entries = named.where(F.col("listed") == ENTRY).withColumn("is_listed", _is_meant())
    return entries.join(traffic, [*_PARTITION, "side", "broker_id"], "left")


def _is_meant() -> Column:
    """A list of nothing but malformed entries names nobody."""
    return F.col("broker_id").isNotNull()


def _of_wildcards(named: "DataFrame", traffic: "DataFrame") -> "DataFrame":
    """`*` is told by those who replicate; where nobody does, by a row without a partition."""
    every = (
        named.where(F.col("listed") == WILDCARD)
        .drop("partition", "broker_id")
        .withColumn("is_listed", F.lit(True))
    )
    return every.join(traffic, [*_MINUTE, "topic", "side"], "left")


def _moves(minutes: "DataFrame", lookups: "Mapping[str, DataFrame]") -> "DataFrame":
    names = topic_ids(lookups["topic_names"], lookups["topics"]).drop("since")
    moves = moving(lookups["reassignment_changes"], names, lookups["replicas"])
    is_on = (F.col("since") < F.col("minute_end")) & F.coalesce(
        F.col("until") > F.col("event_time"), F.lit(True)
    )
    return minutes.join(F.broadcast(moves), "cluster_id").where(is_on)


def _unlisted(
    moves: "DataFrame",
    traffic: "DataFrame",
    replicas: "DataFrame",
    list_histories: "DataFrame",
    configs: "DataFrame",
) -> "DataFrame":
    """What is being moved and no list names."""
    follower = F.when(F.col("side") == FOLLOWER, F.col("broker_id")).otherwise(
        F.col("peer_broker_id")
    )
    moved = (
        moves.select(*_PARTITION, "minute_end", "target_replicas")
        .join(traffic, _PARTITION)
        .where(F.array_contains("target_replicas", follower) & (F.col("behind_fetches") > 0))
        .drop("target_replicas")
        .dropDuplicates(_PAIR)
    )
    with_list = list_histories.select("cluster_id", "topic", "side", F.lit(True).alias("is_told"))
    seen = configs.where("entity_type IN ('topic', 'broker')").select("cluster_id").distinct()
    is_known = F.col("is_told") | F.col("is_seen")
    return (
        moved.join(replicas.select(*_PAIR), _PAIR, "left_anti")
        .join(F.broadcast(with_list), ["cluster_id", "topic", "side"], "left")
        .join(F.broadcast(seen.withColumn("is_seen", F.lit(True))), "cluster_id", "left")
        .withColumn("is_listed", F.when(is_known, F.lit(False)))
        .withColumn("listed", F.when(is_known, UNLISTED))
        .drop("is_told", "is_seen")
    )


def _rated(
    minutes: "DataFrame",
    replicas: "DataFrame",
    traffic: "DataFrame",
    lookups: "Mapping[str, DataFrame]",
) -> "DataFrame":
    """Brokers and sides that no list names, each of which may have a rate all the same."""
    is_rate = F.col("config_key").isin(*RATES.values())
    changed = lookups["config_alterations"].where(is_rate)
    set_ = lookups["configs"].where(is_rate)
    broker_id = F.col("entity_name").try_cast("int").alias("broker_id")
    brokers = (
        changed.select("cluster_id", "entity_type", "entity_name")
        .unionByName(set_.select("cluster_id", "entity_type", "entity_name"))
        .where(F.col("entity_type") == BROKER)
        .select("cluster_id", broker_id)
        .unionByName(traffic.select("cluster_id", "broker_id"))
        .where("broker_id IS NOT NULL")
        .distinct()
    )
    both = F.explode(F.array(F.lit(LEADER), F.lit(FOLLOWER))).alias("side")
    named = replicas.where("is_listed").select(*_MINUTE, "side", "broker_id").distinct()
    return (
        minutes.join(F.broadcast(brokers), "cluster_id")
        .select("*", both)
        .join(named, [*_MINUTE, "side", "broker_id"], "left_anti")
        .withColumns(
            {
                "is_listed": F.lit(False),
                "listed": F.lit(UNLISTED),
                "is_moving": F.lit(False),
            }
        )
    )
