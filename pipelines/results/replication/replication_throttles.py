"""`replication_throttles`: whether throttles of replication bite, or the reason why not (KIP-73).

Its inputs from requests are other results, which are computed before it. A request affects the same
minutes of all of these.
"""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.incremental.result import LookupTable, Result, RuleInputs
from quotaflow.pipelines.results.as_of import HISTORY, histories, in_force, with_since
from quotaflow.pipelines.results.replication import replica_fetches, throttle_configs
from quotaflow.pipelines.results.replication.in_sync_replicas import with_in_isr
from quotaflow.pipelines.results.replication.replication_traffic import BUCKET_S
from quotaflow.pipelines.results.replication.throttle_rates import with_rate
from quotaflow.pipelines.results.replication.throttle_reasons import with_state
from quotaflow.pipelines.results.replication.throttled_sides import pairs, sides
from quotaflow.pipelines.warehouse.time_ranges import TimeRange, within_any
from quotaflow.schemas.tables.reassignments import REASSIGNMENT_CHANGES
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.throttles import (
    REPLICATION_RATES,
    REPLICATION_THROTTLES,
    REPLICATION_TRAFFIC,
)
from quotaflow.schemas.tables.topology import BROKERS, REPLICAS
from quotaflow.udfs.rules.replication_throttle import LEADER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RELEVANT_APIS = ("ALTER_PARTITION", "ALTER_PARTITION_REASSIGNMENTS")
_BY_TIME = (REPLICATION_TRAFFIC, REPLICATION_RATES)
"""Of these results only the minutes that are computed are read."""


def result() -> Result:
    """The result as the driver takes it."""
    return Result(
        table=REPLICATION_THROTTLES,
        facts=REQUESTS,
        bucket_s=BUCKET_S,
        lookback_s=0,
        is_relevant=is_relevant,
        prepare=lambda requests: requests.select("cluster_id", "event_time"),
        compute=throttles,
        runs_forward=True,
        lookups=(
            *replica_fetches.CONTEXT,
            *(LookupTable(table, valid_from=None) for table in (*_BY_TIME, REASSIGNMENT_CHANGES)),
            LookupTable(REPLICAS),
            LookupTable(BROKERS, reaches_back=True),
        ),
    )


def is_relevant() -> Column:
    """Whether a request is relevant to any result that this one reads."""
    return replica_fetches.is_relevant() | F.col("api").isin(*_RELEVANT_APIS)


def throttles(inputs: RuleInputs) -> "DataFrame":
    """Relevant requests to rows of the table."""
    lookups = dict(inputs.lookups)
    for table in _BY_TIME:
        lookups[table.name] = _since(lookups[table.name], inputs)
    minute = F.date_trunc("minute", "event_time")
    minutes = inputs.facts.select("cluster_id", minute.alias("event_time")).distinct()
    ended = minutes.withColumn("minute_end", F.col("event_time") + _minute())
    traffic = inputs.cached(pairs(lookups["replication_traffic"]))
    states = inputs.cached(
        throttle_configs.histories(lookups["config_alterations"], lookups["configs"])
    )
    joined = (
        sides(ended, traffic, states, inputs)
        .transform(with_rate, states, lookups["configs"], "event_time", "minute_end")
        .where("topic IS NOT NULL OR (rate IS NOT NULL AND rate_source LIKE 'dynamic%')")
        .transform(_with_peak, lookups["replication_rates"])
        .transform(_with_other_leader, traffic)
        .transform(_with_removed_brokers, lookups["brokers"])
        .transform(with_in_isr, lookups["reassignment_changes"], lookups["replicas"])
    )
    return (
        with_state(joined.withColumns(_evidence()))
        .withColumns(_kept())
        .select(REPLICATION_THROTTLES.column_names)
    )


def _since(rows: "DataFrame", inputs: RuleInputs) -> "DataFrame":
    if inputs.since is None:
        return rows
    since = TimeRange(inputs.since)
    return rows.where(since.date_condition("event_date")).where(within_any([since], "event_time"))


def _minute() -> Column:
    return F.make_dt_interval(mins=F.lit(1))


def _with_peak(throttled: "DataFrame", rates: "DataFrame") -> "DataFrame":
    minute = F.date_trunc("minute", "event_time").alias("event_time")
    peaks = rates.groupBy("cluster_id", minute, "broker_id", "side").agg(
        F.max("throttled_rate").alias("peak")
    )
    joined = throttled.join(peaks, ["cluster_id", "event_time", "broker_id", "side"], "left")
    return joined.withColumn("peak_rate", F.coalesce("peak", F.lit(0.0))).drop("peak")


def _with_other_leader(throttled: "DataFrame", traffic: "DataFrame") -> "DataFrame":
    partition = ["cluster_id", "event_time", "topic", "partition"]
    led = traffic.select(*partition).distinct().withColumn("is_led", F.lit(True))
    joined = throttled.join(led, partition, "left")
    return joined.withColumn("has_other_leader", F.coalesce("is_led", F.lit(False))).drop("is_led")


def _with_removed_brokers(throttled: "DataFrame", brokers: "DataFrame") -> "DataFrame":
    """Mark brokers that no snapshot knew any more, or ever, and that did not replicate."""
    seen = with_since(brokers)
    is_there = F.when(~F.col("is_removed"), F.lit(True))
    presence = histories(seen, ["cluster_id", "broker_id"], is_there, "since")
    first_seen = seen.groupBy("cluster_id").agg(F.min("since").alias("told_since"))
    is_removed = (
        (F.col("told_since") < F.col("minute_end"))
        & F.col("broker_id").isNotNull()
        & in_force("minute_end").isNull()
        & F.col("peer_broker_id").isNull()
    )
    return (
        throttled.join(presence, ["cluster_id", "broker_id"], "left")
        .join(F.broadcast(first_seen), "cluster_id", "left")
        .withColumn("is_broker_gone", F.coalesce(is_removed, F.lit(False)))
        .drop(HISTORY, "told_since")
    )


def _evidence() -> dict[str, Column]:
    lag, behind = F.col("offset_lag"), F.col("behind_fetches")
    is_leader = F.col("side") == LEADER
    stalled = F.when(is_leader, F.col("stalled_fetches")).otherwise(F.col("omitted_fetches"))
    return {
        "is_replicating": F.col("peer_broker_id").isNotNull(),
        "is_in_sync": F.col("in_isr"),
        "is_lagging": F.when(behind > 0, F.lit(True)).otherwise(lag > 0),
        "held_back": F.coalesce(stalled, F.lit(0)),
    }


def _kept() -> dict[str, Column]:
    return {
        "event_date": F.to_date("event_time"),
        "stalled_fetches": F.col("held_back"),
        "peak_throttled_rate": F.col("peak_rate"),
        "is_configured": F.coalesce("is_list_standing", "is_rate_standing"),
    }
