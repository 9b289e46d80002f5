"""Which partitions were being moved, and from when to when, as requests tell (KIP-455)."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.window import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARTITION = ("cluster_id", "topic", "partition")


def moving(reassignments: "DataFrame", isr_changes: "DataFrame", names: "DataFrame") -> "DataFrame":
    """One row per move that was begun: topic, partition, target_replicas, since, and until.

    A move ends when all its targets came to be in sync, when it is called off, or when another
    takes its place; until is null while nothing tells that. `names` tell topic ids.
    """
    taken = reassignments.where("coalesce(error_code, -1) = 0 AND topic IS NOT NULL")
    of_partition = Window.partitionBy(*_PARTITION).orderBy(
        "event_time", "source_partition", "source_offset"
    )
    begun = taken.select(
        *_PARTITION,
        "target_replicas",
        F.col("event_time").alias("since"),
        F.lead("event_time").over(of_partition).alias("next"),
    ).where("target_replicas IS NOT NULL")
    in_sync = isr_changes.join(F.broadcast(names), ["cluster_id", "topic_id"]).select(
        *_PARTITION, "isr", F.col("event_time").alias("changed")
    )
    is_done = (F.col("changed") > F.col("since")) & (
        F.size(F.array_except("target_replicas", "isr")) == 0
    )
    return (
        begun.join(in_sync, [*_PARTITION], "left")
        .groupBy(*_PARTITION, "target_replicas", "since", "next")
        .agg(F.min(F.when(is_done, F.col("changed"))).alias("done"))
        # least() leaves out what is not known.
        .select(*_PARTITION, "target_replicas", "since", F.least("next", "done").alias("until"))
    )
