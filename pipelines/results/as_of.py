"""Values as they stood at a time: rows of changes, as snapshots append them, looked up."""

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

    A value that is null stands for none: of what was removed.
    """
    change = F.struct(F.col(since).alias("since"), value.alias("value"))
    history = F.sort_array(F.collect_list(change)).alias(HISTORY)
    return F.broadcast(changes.groupBy(*about).agg(history))


def with_since(changes: "DataFrame") -> "DataFrame":
    """Add `since` to what snapshots saw change: what the first one saw is taken to be older.

    So what was before it is told as well, for a result whose context `reaches_back`.
    """
    first = changes.groupBy("cluster_id").agg(F.min("event_time").alias("first_seen"))
    since = F.when(F.col("event_time") == F.col("first_seen"), F.timestamp_seconds(F.lit(0)))
    return (
        changes.join(F.broadcast(first), "cluster_id")
        .withColumn("since", F.coalesce(since, "event_time"))
        .drop("first_seen")
    )


def with_minute(facts: "DataFrame") -> "DataFrame":
    """Put the start of its minute in the place of event_time, and add `minute_end`."""
    minute = F.date_trunc("minute", "event_time")
    end = minute + F.make_dt_interval(mins=F.lit(1))
    return facts.withColumns({"event_time": minute, "minute_end": end})


def in_force(at: str) -> Column:
    """The value that stood just before the time in column `at`; null where none is known."""
    by_then = F.filter(F.col(HISTORY), lambda change: change["since"] < F.col(at))
    return F.try_element_at(by_then, F.lit(-1))["value"]


def is_changed(start: str, end: str) -> Column:
    """Whether the value changed between two times; null where there is no history."""
    return F.exists(
        F.col(HISTORY),
        lambda change: (change["since"] > F.col(start)) & (change["since"] < F.col(end)),
    )
