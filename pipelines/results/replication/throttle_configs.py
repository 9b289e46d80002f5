"""Configs of replication throttles over time, from the request log and from snapshots.

The log has the time and the principal of a change. A snapshot has changes that the log missed, and
those from before the log started.
"""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.results.as_of import HISTORY
from quotaflow.schemas.configs import (
    BROKER,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    TOPIC,
)
from quotaflow.udfs.rules.replication_throttle import (
    DYNAMIC_BROKER,
    DYNAMIC_DEFAULT,
    FOLLOWER,
    LEADER,
    STATIC,
    UNSET,
)
from quotaflow.udfs.rules.throttled_replicas import APPEND, DELETE, SET, SUBTRACT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LISTS = {LEADER: LEADER_REPLICAS.key, FOLLOWER: FOLLOWER_REPLICAS.key}
RATES = {LEADER: LEADER_RATE.key, FOLLOWER: FOLLOWER_RATE.key}
KEY = ["cluster_id", "entity_type", "entity_name", "config_key"]
_STATE = (
    "since: timestamp, value: string, config_source: string, is_whole: boolean, "
    "set_at: timestamp, set_by: string, set_by_client_id: string"
)
_SOURCES = {
    "DYNAMIC_BROKER_CONFIG": DYNAMIC_BROKER,
    "DYNAMIC_DEFAULT_BROKER_CONFIG": DYNAMIC_DEFAULT,
    "STATIC_BROKER_CONFIG": STATIC,
    "DEFAULT_CONFIG": UNSET,
}
_CONFIG_KEYS = [*LISTS.values(), *RATES.values()]
_KEYS_OF = {TOPIC: [*LISTS.values()], BROKER: [*RATES.values()]}
_LOG, _SNAPSHOT = 0, 1
_BEFORE = "try_element_at(states, -1)"
_PARTS = "filter(split({}, ','), part -> part <> '')"
_OLD = _PARTS.format(f"coalesce({_BEFORE}.value, '')")
_MORE = _PARTS.format("coalesce(change.value, '')")
_VALUE = f"""case change.operation
    when '{SET}' then change.value
    when '{APPEND}' then array_join(concat({_OLD}, array_except({_MORE}, {_OLD})), ',')
    when '{SUBTRACT}' then array_join(
        filter({_OLD}, part -> not array_contains({_MORE}, part)), ',')
end"""
# What a snapshot confirms was set by whom the log told.
_IS_CONFIRMED = f"change.told_by = {_SNAPSHOT} and {_BEFORE}.value <=> change.value"
_IS_WHOLE = f"change.operation in ('{SET}', '{DELETE}') or coalesce({_BEFORE}.is_whole, false)"


def _by_setter(name: str) -> str:
    return f"if({_IS_CONFIRMED}, {_BEFORE}.{name}, change.{name}) as {name}"


_HISTORY = f"""aggregate(changes, cast(array() as array<struct<{_STATE}>>),
    (states, change) -> concat(states, array(struct(change.since as since, {_VALUE} as value,
        change.config_source as config_source, {_IS_WHOLE} as is_whole, {_by_setter("set_at")},
        {_by_setter("set_by")}, {_by_setter("set_by_client_id")}))))"""


def histories(alterations: "DataFrame", configs: "DataFrame") -> "DataFrame":
    """One row per config of a throttle that was ever heard of, with its `history`, in order.

    That is of structs of since, value (null: not set), config_source, is_whole (false: what an
    APPEND or SUBTRACT altered was not told), and set_at, set_by and set_by_client_id, where the log
    tells. `alterations` are rows of config_alterations, `configs` those of snapshots.
    """
    taken = (F.col("error_code") == 0) & F.col("entity_type").isin(*_KEYS_OF)
    done = _of_throttles(alterations.where(taken))
    states = _of_log(done).unionByName(_of_snapshots(configs, done))
    change = F.struct("since", "told_by", *_of_change())
    return (
        states.groupBy(*KEY)
        .agg(F.sort_array(F.collect_list(change)).alias("changes"))
        .select(*KEY, F.expr(_HISTORY).alias(HISTORY))
    )


def _of_throttles(alterations: "DataFrame") -> "DataFrame":
    """Those of throttles; what deletes all configs of an entity deletes each of these."""
    keys = F.col("config_key").isin(_CONFIG_KEYS)
    of_type = [
        F.when(F.col("entity_type") == t, F.array(*map(F.lit, k))) for t, k in _KEYS_OF.items()
    ]
    every = F.when(F.col("config_key").isNull(), F.coalesce(*of_type))
    named = F.coalesce(every, F.when(keys, F.array("config_key")))
    return alterations.withColumn("config_key", F.explode(named))


def _of_change() -> tuple[str, ...]:
    return ("operation", "value", "config_source", "set_at", "set_by", "set_by_client_id")


def _of_log(done: "DataFrame") -> "DataFrame":
    source = F.when(F.col("entity_name") == "", DYNAMIC_DEFAULT).otherwise(DYNAMIC_BROKER)
    return done.select(
        *KEY,
        F.col("event_time").alias("since"),
        F.lit(_LOG).alias("told_by"),
        "operation",
        F.col("config_value").alias("value"),
        F.when(F.col("entity_type") == BROKER, source).alias("config_source"),
        F.col("event_time").alias("set_at"),
        F.col("principal").alias("set_by"),
        F.col("client_id").alias("set_by_client_id"),
    )


def _of_snapshots(configs: "DataFrame", done: "DataFrame") -> "DataFrame":
    """What the first snapshot saw is taken to be older, unless the log tells when it came to be."""
    seen = configs.where(
        F.col("entity_type").isin(TOPIC, BROKER) & F.col("config_key").isin(_CONFIG_KEYS)
    )
    first = configs.groupBy("cluster_id").agg(F.min("event_time").alias("first_seen"))
    changed = done.groupBy(*KEY).agg(F.min("event_time").alias("first_changed"))
    is_older = F.coalesce(F.col("first_changed") > F.col("first_seen"), F.lit(True))
    since = F.when(
        (F.col("event_time") == F.col("first_seen")) & is_older, F.timestamp_seconds(F.lit(0))
    )
    none = F.lit(None)
    is_set = ~F.col("is_removed") & (F.col("source") != UNSET)
    return (
        seen.join(F.broadcast(first), "cluster_id")
        .join(F.broadcast(changed), KEY, "left")
        .withColumn("source", _source())
        .select(
            *KEY,
            F.coalesce(since, "event_time").alias("since"),
            F.lit(_SNAPSHOT).alias("told_by"),
            F.when(is_set, SET).otherwise(DELETE).alias("operation"),
            F.when(is_set, F.col("config_value")).alias("value"),
            F.when(F.col("entity_type") == BROKER, F.col("source")).alias("config_source"),
            none.cast("timestamp").alias("set_at"),
            none.cast("string").alias("set_by"),
            none.cast("string").alias("set_by_client_id"),
        )
    )


def _source() -> Column:
    source_names = F.create_map(*(F.lit(text) for pair in _SOURCES.items() for text in pair))
    return F.coalesce(F.element_at(source_names, F.col("config_source")), F.lit(STATIC))
