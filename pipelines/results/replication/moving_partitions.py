"""Moves of partitions, and their in-sync replicas (KIP-455).

From requests, and from snapshots too. The controller ends a move at once if all its targets are in
sync already (it then drops or reorders replicas), without any request. And the logs of some
controllers are not shipped.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.window import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARTITION = ("cluster_id", "topic", "partition")
_REQUEST = ("event_time", "broker_id", "change")
_MOVE = (*_PARTITION, "target_replicas", "since")
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


def moving(changes: "DataFrame", names: "DataFrame", replicas: "DataFrame") -> "DataFrame":
    """One row per move that was begun: topic, partition, target_replicas, since, and until.

    A move ends when all its targets came to be in sync, when it is called off, or when another
    takes its place; until is null while nothing tells that. `changes` are rows of
    reassignment_changes, `replicas` those of snapshots; `names` tell topic ids.
    """
    is_request = F.col("change").isin("requested", "cancelled") & (F.col("error_code") == 0)
    requests = (
        changes.where(is_request)
        .groupBy(*_PARTITION, *_REQUEST)
        .agg(F.sort_array(F.collect_set("replica_id")).alias("target_replicas"))
    )
    of_partition = Window.partitionBy(*_PARTITION).orderBy("event_time", "broker_id")
    moves = requests.select(
        *_PARTITION,
        "target_replicas",
        "change",
        F.col("event_time").alias("since"),
        F.lead("event_time").over(of_partition).alias("next"),
        F.lag("target_replicas").over(of_partition).alias("targets_before"),
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
        moves.join(joined, [*_PARTITION], "left")
        .groupBy(*_MOVE, "next")
        .agg(F.min(F.when(is_done, F.col("changed"))).alias("done"))
        .join(_seen_in_sync(moves, replicas), [*_MOVE], "left")
        # least() leaves out what is not known.
        .select(*_MOVE, F.least("next", "done", "seen_done").alias("until"))
    )


def _seen_in_sync(moves: "DataFrame", replicas: "DataFrame") -> "DataFrame":
    """When snapshots had seen all targets of a move in sync, `seen_done`: not before it began.

    What was seen before holds unless the move before this one may have taken it away.
    """
    of_replica = Window.partitionBy(*_PARTITION, "topic_id", "broker_id").orderBy("event_time")
    seen = replicas.select(
        *_PARTITION,
        F.col("broker_id").alias("target"),
        F.col("event_time").alias("seen"),
        F.lead("event_time").over(of_replica).alias("unseen"),
        (~F.col("is_removed") & F.coalesce("is_in_sync", F.lit(False))).alias("is_in"),
    ).where("is_in")
    was_kept = F.coalesce(F.array_contains("targets_before", F.col("target")), F.lit(True))
    still_in = F.coalesce(F.col("unseen") > F.col("since"), F.lit(True))
    is_valid = (F.col("seen") >= F.col("since")) | (still_in & was_kept)
    each = (
        moves.select(*_MOVE, "targets_before", F.explode("target_replicas").alias("target"))
        .join(seen, [*_PARTITION, "target"])
        .where(is_valid)
        .groupBy(*_MOVE, "target")
        .agg(F.min(F.greatest("seen", "since")).alias("at"))
    )
    is_all = F.count(F.lit(1)) == F.size("target_replicas")
    return each.groupBy(*_MOVE).agg(F.when(is_all, F.max("at")).alias("seen_done"))
