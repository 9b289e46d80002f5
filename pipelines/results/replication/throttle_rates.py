"""The rates of replication throttles at brokers, and the source of each (KIP-73)."""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.results.as_of import HISTORY, with_since
from quotaflow.pipelines.results.replication.throttle_configs import RATES
from quotaflow.schemas.configs import BROKER
from quotaflow.udfs.rules.replication_throttle import DYNAMIC_BROKER, STATIC, UNSET

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SETTER = ("set_at", "set_by", "set_by_client_id")
_UNLIMITED = 2**63 - 1
"""The default of a rate, which is none."""


def with_rate(
    rows: "DataFrame", states: "DataFrame", configs: "DataFrame", start: str, end: str
) -> "DataFrame":
    """Add the rate of a row's broker_id and side that stood last between two times.

    That is `rate`, `rate_source`, `rate_set_at`, `rate_set_by` and `rate_set_by_client_id`, and
    is_rate_standing: it did at the end too. Without a rate rate_source is unset, or null where
    neither the log nor a snapshot tells. `states` are the histories of configs of throttles.
    """
    of_rates = states.where(F.col("entity_type") == BROKER)
    side = F.create_map(*(F.lit(text) for name, key in RATES.items() for text in (key, name)))
    rate_states = of_rates.select(
        "cluster_id",
        "entity_name",
        F.element_at(side, F.col("config_key")).alias("side"),
        HISTORY,
    )
    own = rate_states.where("entity_name <> ''").select(
        "cluster_id",
        F.col("entity_name").try_cast("int").alias("broker_id"),
        "side",
        F.col(HISTORY).alias("own"),
    )
    default = rate_states.where("entity_name = ''").select(
        "cluster_id", "side", F.col(HISTORY).alias("default")
    )
    return (
        rows.join(F.broadcast(own), ["cluster_id", "broker_id", "side"], "left")
        .join(F.broadcast(default), ["cluster_id", "side"], "left")
        .join(F.broadcast(_seen(configs)), ["cluster_id", "broker_id"], "left")
        .withColumn("at_end", _in_force(F.col(end)))
        .withColumn("stood", F.coalesce("at_end", _last_while(start, end)))
        .withColumns(_reported(end))
        .drop("own", "default", "seen_since", "at_end", "stood")
    )


def _seen(configs: "DataFrame") -> "DataFrame":
    """Since when snapshots know a broker's configs: a rate they do not tell is not set."""
    return (
        with_since(configs.where(F.col("entity_type") == BROKER))
        .groupBy("cluster_id", F.col("entity_name").try_cast("int").alias("broker_id"))
        .agg(F.min("since").alias("seen_since"))
    )


def _reported(end: str) -> dict[str, Column]:
    state = F.col("stood")
    unset = F.when(F.col("seen_since") < F.col(end), UNSET)
    return {
        "rate": state["value"].try_cast("double"),
        "rate_source": F.coalesce(state["config_source"], unset),
        **{f"rate_{name}": state[name] for name in SETTER},
        "is_rate_standing": F.col("at_end").isNotNull(),
    }


def _in_force(at: Column) -> Column:
    """The state that decides just before a time, of a broker's own and of all brokers; or null.

    A snapshot tells for each broker what it has, from wherever: it is believed until the default
    changes.
    """
    own, default = _before("own", at), _before("default", at)
    is_own = own["config_source"] == DYNAMIC_BROKER
    is_newer = F.coalesce(own["since"] >= default["since"], F.lit(True))
    return (
        F.when(_is_set(own) & (is_own | is_newer), own)
        .when(_is_set(default), default)
        .when(_is_set(own) & (own["config_source"] == STATIC), own)
    )


def _before(history: str, at: Column) -> Column:
    by_then = F.filter(history, lambda state: state["since"] < at)
    return F.try_element_at(by_then, F.lit(-1))


def _is_set(state: Column) -> Column:
    rate = state["value"].try_cast("decimal(38, 0)")
    return F.coalesce(rate < _UNLIMITED, F.lit(False))


def _last_while(start: str, end: str) -> Column:
    """The last state that decided before one of the changes between two times."""
    none = F.array().cast("array<timestamp>")
    since = F.concat(*(F.coalesce(F.col(history)["since"], none) for history in ("own", "default")))
    between = F.filter(since, lambda time: (time > F.col(start)) & (time < F.col(end)))
    newest_first = F.sort_array(between, asc=False)
    states = F.transform(newest_first, _in_force)
    return F.get(F.filter(states, lambda state: state.isNotNull()), F.lit(0))
