"""The listed replicas of replication throttles, by minute (KIP-73)."""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.results.as_of import HISTORY
from quotaflow.pipelines.results.replication.throttle_configs import LISTS
from quotaflow.pipelines.results.replication.throttle_rates import SETTER
from quotaflow.schemas.configs import TOPIC
from quotaflow.udfs.rules.throttled_replicas import ALL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ENTRY, WILDCARD, UNLISTED = "entry", "wildcard", "unlisted"
_LIST = ("cluster_id", "event_time", "minute_end", "topic", "side")
_ENTRY = r"^[0-9]+:[0-9]+$"
_MOST_MALFORMED_CHARS = 300


def lists(states: "DataFrame") -> "DataFrame":
    """One row per topic and side that ever had a list, with the `history` of that.

    `states` are the histories of configs of throttles.
    """
    side = F.create_map(*(F.lit(text) for name, key in LISTS.items() for text in (key, name)))
    return states.where(F.col("entity_type") == TOPIC).select(
        "cluster_id",
        F.col("entity_name").alias("topic"),
        F.element_at(side, F.col("config_key")).alias("side"),
        HISTORY,
    )


def listed(minutes: "DataFrame", histories_: "DataFrame") -> "DataFrame":
    """One row per minute and entry of a list that stood in it, if only for a moment.

    With `listed`, partition and broker_id (null for `*`), the entries of that list that mean
    nothing, who set it last, and is_list_standing: it named the entry at the end of the minute too.
    """
    states = (
        minutes.join(F.broadcast(histories_), "cluster_id")
        .select(*_LIST, F.explode(_was_in_force()).alias("state"))
        .withColumn("text", F.trim("state.value"))
        .where("text <> ''")
    )
    is_all = F.col("text") == ALL
    parts = F.array_distinct(F.split("text", ","))
    entries = F.filter(parts, _is_entry)
    malformed = F.filter(parts, lambda part: ~_is_entry(part) & (part != "") & ~is_all)
    # A list of nothing but malformed entries is told too.
    named = F.when(is_all | (F.size(entries) == 0), F.array(F.lit(None).cast("string")))
    return (
        states.withColumns(
            {
                "malformed": F.left(F.array_join(malformed, ","), F.lit(_MOST_MALFORMED_CHARS)),
                "is_all": is_all,
                "entry": F.explode(F.coalesce(named, entries)),
            }
        )
        .groupBy(*_LIST, "entry", "is_all")
        .agg(
            F.max_by(F.struct("malformed", *(f"state.{n}" for n in SETTER)), "state.since").alias(
                "last"
            ),
            F.bool_or(F.coalesce(F.col("state.until") >= F.col("minute_end"), F.lit(True))).alias(
                "is_list_standing"
            ),
        )
        .select(
            *_LIST,
            F.split("entry", ":")[0].try_cast("int").alias("partition"),
            F.split("entry", ":")[1].try_cast("int").alias("broker_id"),
            F.when(F.col("is_all"), WILDCARD).otherwise(ENTRY).alias("listed"),
            F.nullif("last.malformed", F.lit("")).alias("list_malformed"),
            *(F.col(f"last.{name}").alias(f"list_{name}") for name in SETTER),
            "is_list_standing",
        )
    )


def _was_in_force() -> Column:
    """The states of a list that stood in the minute, each with the time `until` it did."""
    numbered = F.transform(
        HISTORY,
        lambda state, n: state.withField("until", F.get(F.col(HISTORY), n + 1)["since"]),
    )
    return F.filter(
        numbered,
        lambda state: (
            (state["since"] < F.col("minute_end"))
            & F.coalesce(state["until"] > F.col("event_time"), F.lit(True))
        ),
    )


def _is_entry(part: Column) -> Column:
    numbers = F.split(part, ":")
    is_small = F.forall(numbers, lambda number: number.try_cast("int").isNotNull())
    return part.rlike(_ENTRY) & is_small
