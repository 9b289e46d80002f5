"""Values at a time, looked up in rows of changes, such as those of snapshots."""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HISTORY = "history"


def histories(
    changes: "DataFrame", about: list[str], value: Column, since: str = "event_time"
) -> "DataFrame":
    """One row per `about` with the `history` of its value, small enough to be broadcast.

    A null value means that there is none, as after a removal.
    """
    change = F.struct(F.col(since).alias("since"), value.alias("value"))
    history = F.sort_array(F.collect_list(change)).alias(HISTORY)
    return F.broadcast(changes.groupBy(*about).agg(history))


def with_since(changes: "DataFrame") -> "DataFrame":
    """Add `since` to changes that snapshots found; those of a cluster's first snapshot get 1970.

    So values are known for the time before it too, for lookups with `reaches_back`.
    """
    first = changes.groupBy("cluster_id").agg(F.min("event_time").alias("first_seen"))
    since = F.when(F.col("event_time") == F.col("first_seen"), F.timestamp_seconds(F.lit(0)))
    return (
        changes.join(F.broadcast(first), "cluster_id")
        .withColumn("since", F.coalesce(since, "event_time"))
        .drop("first_seen")
    )


def with_minute(facts: "DataFrame") -> "DataFrame":
    """Replace event_time by the start of its minute, and add `minute_end`."""
    minute = F.date_trunc("minute", "event_time")
    end = minute + F.make_dt_interval(mins=F.lit(1))
    return facts.withColumns({"event_time": minute, "minute_end": end})


def in_force(at: str) -> Column:
    """The value just before the time in column `at`; null if none is known."""
    by_then = F.filter(F.col(HISTORY), lambda change: change["since"] < F.col(at))
    return F.try_element_at(by_then, F.lit(-1))["value"]


def is_changed(start: str, end: str) -> Column:
    """Whether the value changed between two times; null without a history."""
    return F.exists(
        F.col(HISTORY),
        lambda change: (change["since"] > F.col(start)) & (change["since"] < F.col(end)),
    )
