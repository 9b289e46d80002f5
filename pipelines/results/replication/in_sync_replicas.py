"""Whether followers were in sync, by minute: from their fetches, the log, and snapshots.

The high watermark is the lowest log end of all in-sync replicas. So a follower that fetches from
below it is not in sync: every log has this proof.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.results.replication.moving_partitions import in_sync
from quotaflow.udfs.rules.replication_throttle import FOLLOWER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARTITION = ["cluster_id", "topic_id", "partition"]
BY_OFFSET, BY_LOG, BY_SNAPSHOT = "fetch_offset", "alter_partition", "snapshot"


def with_in_isr(sides: "DataFrame", changes: "DataFrame", replicas: "DataFrame") -> "DataFrame":
    """Add in_isr, null where not known, and in_isr_source, to sides of replications.

    `changes` are rows of reassignment_changes, `replicas` those of snapshots.
    True is only what was in sync all minute. The newer of log and snapshot is believed.
    """
    follower = F.when(F.col("side") == FOLLOWER, F.col("broker_id")).otherwise(
        F.col("peer_broker_id")
    )
    joined = (
        sides.withColumn("of_follower", follower)
        .join(_of_log(changes), _PARTITION, "left")
        .join(_of_snapshots(replicas), [*_PARTITION, "of_follower"], "left")
    )
    logged, seen = _in_force("logged"), _in_force("seen")
    is_behind = F.col("behind_fetches") > 0
    is_newer = F.coalesce(logged["since"] >= seen["since"], logged.isNotNull())
    by_log = _all_minute("logged", _is_in)
    by_snapshot = _all_minute("seen", lambda state: state["is_in_sync"])
    return joined.withColumns(
        {
            "in_isr": F.when(is_behind, F.lit(False))
            .when(is_newer, by_log)
            .when(seen.isNotNull(), by_snapshot),
            "in_isr_source": F.when(is_behind, BY_OFFSET)
            .when(is_newer, BY_LOG)
            .when(seen.isNotNull(), BY_SNAPSHOT),
        }
    ).drop("of_follower", "logged", "seen")


def _of_log(changes: "DataFrame") -> "DataFrame":
    state = F.struct("since", "isr")
    return (
        in_sync(changes)
        .groupBy(*_PARTITION)
        .agg(F.sort_array(F.collect_list(state)).alias("logged"))
    )


def _of_snapshots(replicas: "DataFrame") -> "DataFrame":
    is_in_sync = ~F.col("is_removed") & F.coalesce("is_in_sync", F.lit(False))
    state = F.struct(F.col("event_time").alias("since"), is_in_sync.alias("is_in_sync"))
    return replicas.groupBy(*_PARTITION, F.col("broker_id").alias("of_follower")).agg(
        F.sort_array(F.collect_list(state)).alias("seen")
    )


def _is_in(state: Column) -> Column:
    return F.array_contains(state["isr"], F.col("of_follower"))


def _in_force(history: str) -> Column:
    """The last state by the end of the minute."""
    by_then = F.filter(history, lambda state: state["since"] < F.col("minute_end"))
    return F.try_element_at(by_then, F.lit(-1))


def _all_minute(history: str, is_in: Callable[[Column], Column]) -> Column:
    """Whether all states that stood in the minute hold; null where its beginning is not known."""
    before = F.filter(history, lambda state: state["since"] <= F.col("event_time"))
    within = F.filter(
        history,
        lambda state: (
            (state["since"] > F.col("event_time")) & (state["since"] < F.col("minute_end"))
        ),
    )
    first = F.try_element_at(before, F.lit(-1))
    is_out = ~is_in(first) | F.exists(within, lambda state: ~is_in(state))
    return F.when(F.coalesce(is_out, F.lit(False)), F.lit(False)).when(
        first.isNotNull(), F.lit(True)
    )
