"""Which partitions were being moved, and which replicas were in sync, by requests (KIP-455)."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.window import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARTITION = ("cluster_id", "topic", "partition")
_REQUEST = ("event_time", "broker_id", "change")
_TAKEN = (0, 108)
"""Done; and NEW_LEADER_ELECTED, which is done too."""


def in_sync(changes: "DataFrame") -> "DataFrame":
    """One row per change of the in-sync replicas of a partition: `isr`, and `since` when."""
    return (
        changes.where((F.col("change") == "in_sync") & F.col("error_code").isin(*_TAKEN))
        .groupBy("cluster_id", "topic_id", "partition", *_REQUEST)
        .agg(F.sort_array(F.collect_set("replica_id")).alias("isr"))
        .select("cluster_id", "topic_id", "partition", F.col("event_time").alias("since"), "isr")
    )


def moving(changes: "DataFrame", names: "DataFrame") -> "DataFrame":
    """One row per move that was begun: topic, partition, target_replicas, since, and until.

    A move ends when all its targets came to be in sync, when it is called off, or when another
    takes its place; until is null while nothing tells that. `changes` are rows of
    reassignment_changes; `names` tell topic ids.
    """
    is_asked = F.col("change").isin("requested", "cancelled") & (F.col("error_code") == 0)
    asked = (
        changes.where(is_asked)
        .groupBy(*_PARTITION, *_REQUEST)
        .agg(F.sort_array(F.collect_set("replica_id")).alias("target_replicas"))
    )
    of_partition = Window.partitionBy(*_PARTITION).orderBy("event_time", "broker_id")
    begun = asked.select(
        *_PARTITION,
        "target_replicas",
        "change",
        F.col("event_time").alias("since"),
        F.lead("event_time").over(of_partition).alias("next"),
    ).where("change = 'requested'")
    joined = (
        in_sync(changes)
        .withColumnRenamed("since", "changed")
        .join(F.broadcast(names), ["cluster_id", "topic_id"])
        .select(*_PARTITION, "isr", "changed")
    )
    is_done = (F.col("changed") > F.col("since")) & (
        F.size(F.array_except("target_replicas", "isr")) == 0
    )
    return (
        begun.join(joined, [*_PARTITION], "left")
        .groupBy(*_PARTITION, "target_replicas", "since", "next")
        .agg(F.min(F.when(is_done, F.col("changed"))).alias("done"))
        # least() leaves out what is not known.
        .select(*_PARTITION, "target_replicas", "since", F.least("next", "done").alias("until"))
    )
