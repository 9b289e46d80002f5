"""`producer_id_rates`: new producer ids per principal, broker and second (KIP-936).

Aligned time: the rate at a second is the sum over the `num_windows` aligned windows ending with
the one that holds it, divided by their whole span; so a row does not depend on when a run began.
Tokens are kept in thousandths as integers: their sums are exact in any order.
"""

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.quota_sections import LEAST_IDS_PER_S, MOST_IDS_PER_S, ProducerIds
from quotaflow.pipelines.results.result import Known, Result
from quotaflow.schemas import tables
from quotaflow.schemas.table import sql_type
from quotaflow.udfs import producer_ids

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY = list(producer_ids.KEY)
# A bucket not touched for a day counts as full again, so that no row depends on all of history.
FULL_AGAIN_S = 86_400
_MILLI = 1_000
_SIGHTINGS = ", ".join(f"{f.name} {sql_type(f.type)}" for f in producer_ids.SIGHTINGS)
_FLAGGED = f"{_SIGHTINGS}, is_new_exact BOOLEAN, is_new BOOLEAN"


def result(conf: ProducerIds) -> Result:
    """The result as the driver takes it; raises ConfigError for a quota out of bounds."""
    for user, quota in [("everybody else", conf.default_quota_per_s), *conf.quotas.items()]:
        if not LEAST_IDS_PER_S <= quota <= MOST_IDS_PER_S:
            raise ConfigError(
                f"the producer-id quota of {user} is {quota} per second, and must be between "
                f"{LEAST_IDS_PER_S} and {MOST_IDS_PER_S}"
            )
    memory_s = 2 * conf.filter_window_ms // 1_000
    window_s = conf.num_windows * conf.window_ms // 1_000
    return Result(
        table=tables.PRODUCER_ID_RATES,
        facts=tables.REQUESTS,
        bucket_s=60,
        lookback_s=memory_s + window_s,
        relevant=sightings,
        compute=partial(rates, conf=conf),
        carry_s=FULL_AGAIN_S,
        carry_key=tuple(KEY),
        warm_up_s=window_s,
        scope="kind = 'allocation'",
    )


def sightings(requests: "DataFrame") -> "DataFrame":
    """Requests that show a producer id of their principal: handed out, or used in a transaction.

    Batched ADD_PARTITIONS_TO_TXN (version 4 and later) go between brokers and show none.
    """
    shows = (F.col("producer_id") >= 0) & (F.coalesce(F.col("error_code"), F.lit(0)) == 0)
    return requests.where(shows & F.col("principal").isNotNull()).select(
        "cluster_id",
        "broker_id",
        "principal",
        F.lit("allocation").alias("kind"),
        "event_time",
        "record_time",
        F.unix_millis("event_time").alias("event_ms"),
        "producer_id",
    )


def rates(known: Known, *, conf: ProducerIds) -> "DataFrame":
    """Sightings to rows of the table; those before `known.since` are only remembered."""
    windows = _with_rate(_per_second(_flagged(known.facts, conf)), conf)
    if known.since is not None:
        windows = windows.where(F.col("second") >= int(known.since.timestamp()))
    return (
        _with_tokens(windows, known.before, conf)
        .withColumns(
            {
                "event_time": F.timestamp_seconds("second"),
                "event_date": F.to_date(F.timestamp_seconds("second")),
                "tokens": F.col("tokens_milli") / _MILLI,
                "quota_per_s": F.col("quota_milli") / _MILLI,
                "is_violating": F.col("tokens_milli") < 0,
                "throttle_time_ms": _throttle_time_ms(),
            }
        )
        .withColumn("throttle_time_avg_ms", _throttle_time_avg_ms(conf))
        .select(tables.PRODUCER_ID_RATES.column_names)
    )


def _flagged(seen: "DataFrame", conf: ProducerIds) -> "DataFrame":
    flag = producer_ids.flag_new_ids(
        conf.filter_items, conf.filter_false_positive_rate, conf.filter_window_ms
    )
    return (
        # One shuffle serves the exact count, the filter's walk and its order.
        seen.repartition(*KEY)
        .withColumn("is_new_exact", _is_new_exact(conf.filter_window_ms))
        .select(*producer_ids.ORDER, "is_new_exact")
        .sortWithinPartitions(*producer_ids.ORDER)
        .mapInArrow(flag, _FLAGGED)
    )


def _is_new_exact(window_ms: int) -> Column:
    ids = Window.partitionBy(*KEY, "producer_id").orderBy("event_ms")
    now, last = F.col("event_ms"), F.lag("event_ms").over(ids)
    window, last_window = F.floor(now / window_ms), F.floor(last / window_ms)
    in_first_half = 2 * (now % window_ms) < window_ms
    known = (last_window == window) | (in_first_half & (last_window == window - 1))
    return ~F.coalesce(known, F.lit(False))


def _per_second(flagged: "DataFrame") -> "DataFrame":
    # Partitioned by KEY alone, so that every step from here on needs no further shuffle.
    return (
        flagged.repartition(*KEY)
        .groupBy(*KEY, F.floor(F.col("event_ms") / 1_000).alias("second"))
        .agg(
            F.count(F.lit(1)).alias("sightings"),
            F.sum(F.col("is_new").cast("bigint")).alias("new_ids"),
            F.sum(F.col("is_new_exact").cast("bigint")).alias("new_ids_exact"),
        )
    )


def _with_rate(seconds: "DataFrame", conf: ProducerIds) -> "DataFrame":
    window_s = conf.window_ms // 1_000
    span_s = conf.num_windows * window_s
    last = F.floor(F.col("second") / window_s) * window_s + F.lit(span_s - 1)
    felt = seconds.withColumn("felt", F.explode(F.sequence(F.col("second"), last)))
    own = F.col("felt") == F.col("second")
    counted = ["sightings", "new_ids", "new_ids_exact"]
    return (
        felt.groupBy(*KEY, F.col("felt").alias("second"))
        .agg(
            (F.sum("new_ids") / F.lit(float(span_s))).alias("rate_per_s"),
            *(F.sum(F.when(own, F.col(c)).otherwise(0)).alias(c) for c in counted),
        )
        .select(*KEY, "second", "rate_per_s", *counted)
    )


def quota_milli(conf: ProducerIds) -> Column:
    default = F.lit(round(conf.default_quota_per_s * _MILLI)).cast("bigint")
    own = [F.lit(x) for user, q in conf.quotas.items() for x in (f"User:{user}", round(q * _MILLI))]
    if not own:
        return default
    return F.coalesce(
        F.try_element_at(F.create_map(*own), F.col("principal")).cast("bigint"), default
    )


def _with_tokens(
    windows: "DataFrame", before: "DataFrame | None", conf: ProducerIds
) -> "DataFrame":
    """Kafka's TokenBucket over aligned seconds, as a running sum and a running minimum.

    tokens(i) = min(burst, tokens(i-1) + quota x gap) - new(i) unrolls to
    quota x t(i) - N(i) + min over j <= i of (burst + N(j-1) - quota x t(j)), N the sum of new.
    """
    burst_s = conf.num_windows * conf.window_ms // 1_000
    start_milli = F.lit(burst_s) * F.col("quota_milli")
    rows = windows.withColumn("carried_milli", F.lit(None).cast("bigint"))
    if before is not None:
        rows = rows.unionByName(_carried(before), allowMissingColumns=True)
    rows = rows.withColumn("quota_milli", quota_milli(conf))
    # Every window here has one partitioning and one order, so that rows are sorted once.
    run = Window.partitionBy(*KEY).orderBy("second")
    gap = F.col("second") - F.lag("second").over(run)
    spent = F.sum(F.col("new_ids") * _MILLI).over(run)
    refilled = F.col("quota_milli") * F.col("second")
    ceiling = F.coalesce("carried_milli", start_milli + F.col("spent") - F.col("new_ids") * _MILLI)
    # After such a gap the bucket is full, whatever was owed: earlier ceilings hold no longer.
    gaps = F.sum(F.coalesce((gap > FULL_AGAIN_S).cast("int"), F.lit(0))).over(run)
    least = F.min(F.struct((-F.col("gaps")).alias("gaps"), (ceiling - refilled).alias("milli")))
    return (
        rows.withColumns({"spent": spent, "gaps": gaps})
        .withColumn("tokens_milli", refilled - F.col("spent") + least.over(run)["milli"])
        .where(F.col("carried_milli").isNull())
    )


def _carried(before: "DataFrame") -> "DataFrame":
    return before.select(
        *KEY,
        F.unix_seconds("event_time").alias("second"),
        F.lit(0).cast("bigint").alias("new_ids"),
        F.round(F.col("tokens") * _MILLI).cast("bigint").alias("carried_milli"),
    )


def _throttle_time_avg_ms(conf: ProducerIds) -> Column:
    span_s = conf.num_windows * conf.window_ms // 1_000
    run = Window.partitionBy(*KEY).orderBy("second").rangeBetween(1 - span_s, 0)
    told = F.when((F.col("new_ids") > 0) & F.col("is_violating"), F.col("throttle_time_ms"))
    return F.coalesce(F.avg(told).over(run), F.lit(0.0))


def _throttle_time_ms() -> Column:
    owed = F.round(-F.col("tokens_milli") * 1_000 / F.col("quota_milli")).cast("bigint")
    return F.when(F.col("tokens_milli") < 0, owed).otherwise(F.lit(0).cast("bigint"))
