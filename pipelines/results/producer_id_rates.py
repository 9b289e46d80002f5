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
_COUNTED = ("sightings", "new_ids", "new_ids_exact")
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
    return Result(
        table=tables.PRODUCER_ID_RATES,
        facts=tables.REQUESTS,
        bucket_s=60,
        lookback_s=memory_s + _span_s(conf),
        relevant=sightings,
        compute=partial(rates, conf=conf),
        carry_s=FULL_AGAIN_S,
        carry_key=tuple(KEY),
        warm_up_s=_span_s(conf),
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
    seconds = _with_recent(_per_second(_flagged(known.facts, conf)), conf)
    if known.since is not None:
        seconds = _since(seconds, int(known.since.timestamp()))
    seconds = _with_throttles(_with_tokens(seconds, known.before, conf), conf)
    return (
        _felt(seconds, conf)
        .withColumns(
            {
                "event_time": F.timestamp_seconds("second"),
                "event_date": F.to_date(F.timestamp_seconds("second")),
                "tokens": F.col("tokens_milli") / _MILLI,
                "quota_per_s": F.col("quota_milli") / _MILLI,
                "is_violating": F.col("tokens_milli") < 0,
                "throttle_time_ms": F.coalesce(_throttle_time_ms(), F.lit(0).cast("bigint")),
            }
        )
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


def _with_recent(seconds: "DataFrame", conf: ProducerIds) -> "DataFrame":
    """Each second that has sightings, with the last second that feels it, and those it feels."""
    window_s, span_s = conf.window_ms // 1_000, _span_s(conf)
    felt_to = F.floor(F.col("second") / window_s) * window_s + F.lit(span_s - 1)
    recent = F.collect_list(F.struct("felt_to", "new_ids"))
    run = Window.partitionBy(*KEY).orderBy("second").rangeBetween(1 - span_s, 0)
    return seconds.withColumn("felt_to", felt_to).withColumn("recent", recent.over(run))


def _since(seconds: "DataFrame", since_s: int) -> "DataFrame":
    """What is felt from a second on: of those before it, that they are still felt."""
    own = F.col("second") >= since_s
    return (
        seconds.where(F.col("felt_to") >= since_s)
        .groupBy(*KEY, F.greatest("second", F.lit(since_s)).alias("from_s"))
        .agg(
            *(F.sum(F.when(own, F.col(name)).otherwise(0)).alias(name) for name in _COUNTED),
            F.max("felt_to").alias("felt_to"),
            F.max_by("recent", "second").alias("recent"),
        )
        .withColumnRenamed("from_s", "second")
    )


def _felt(seconds: "DataFrame", conf: ProducerIds) -> "DataFrame":
    """A row for each second that feels sightings: of its own, or of seconds before it."""
    felt, span_s = F.col("felt"), _span_s(conf)
    own, zero = felt == F.col("second"), F.lit(0).cast("bigint")
    refilled = F.col("tokens_milli") + F.col("quota_milli") * (felt - F.col("second"))
    return seconds.withColumn("felt", F.explode(F.sequence("second", "last"))).select(
        *KEY,
        felt.alias("second"),
        "quota_milli",
        (_felt_ids(felt) / F.lit(float(span_s))).alias("rate_per_s"),
        *(F.when(own, F.col(name)).otherwise(zero).alias(name) for name in _COUNTED),
        F.least(F.lit(span_s) * F.col("quota_milli"), refilled).alias("tokens_milli"),
        _throttle_time_avg_ms(felt, span_s).alias("throttle_time_avg_ms"),
    )


def _felt_ids(felt: Column) -> Column:
    """New ids of the seconds a second still feels; where that is one alone no array is walked."""
    still = F.filter("recent", lambda of: of["felt_to"] >= felt)
    ids = F.aggregate(still, F.lit(0).cast("bigint"), lambda sum_, of: sum_ + of["new_ids"])
    return F.when(F.size("recent") == 1, F.col("recent")[0]["new_ids"]).otherwise(ids)


def _throttle_time_avg_ms(felt: Column, span_s: int) -> Column:
    told = F.filter("throttles", lambda of: of["second"] > felt - span_s)
    ms = F.aggregate(told, F.lit(0).cast("bigint"), lambda sum_, of: sum_ + of["ms"])
    avg = F.coalesce(F.try_divide(ms, F.size(told)), F.lit(0.0))
    return F.when(F.size("throttles") == 0, F.lit(0.0)).otherwise(avg)


def _span_s(conf: ProducerIds) -> int:
    return conf.num_windows * conf.window_ms // 1_000


def quota_milli(conf: ProducerIds) -> Column:
    default = F.lit(round(conf.default_quota_per_s * _MILLI)).cast("bigint")
    own = [F.lit(x) for user, q in conf.quotas.items() for x in (f"User:{user}", round(q * _MILLI))]
    if not own:
        return default
    return F.coalesce(
        F.try_element_at(F.create_map(*own), F.col("principal")).cast("bigint"), default
    )


def _with_tokens(
    seconds: "DataFrame", before: "DataFrame | None", conf: ProducerIds
) -> "DataFrame":
    """Kafka's TokenBucket over aligned seconds, as a running sum and a running minimum.

    tokens(i) = min(burst, tokens(i-1) + quota x gap) - new(i) unrolls to
    quota x t(i) - N(i) + min over j <= i of (burst + N(j-1) - quota x t(j)), N the sum of new.
    """
    start_milli = F.lit(_span_s(conf)) * F.col("quota_milli")
    rows = seconds.withColumn("carried_milli", F.lit(None).cast("bigint"))
    if before is not None:
        rows = rows.unionByName(_carried(before), allowMissingColumns=True)
    rows = rows.withColumn("quota_milli", quota_milli(conf))
    # Every window here has one partitioning and one order, so that rows are sorted once.
    run = Window.partitionBy(*KEY).orderBy("second")
    gap = F.col("second") - F.lag("felt_to").over(run)
    last = F.least("felt_to", F.lead("second").over(run) - 1)
    spent = F.sum(F.col("new_ids") * _MILLI).over(run)
    refilled = F.col("quota_milli") * F.col("second")
    ceiling = F.coalesce("carried_milli", start_milli + F.col("spent") - F.col("new_ids") * _MILLI)
    # After such a gap the bucket is full, whatever was owed: earlier ceilings hold no longer.
    gaps = F.sum(F.coalesce((gap > FULL_AGAIN_S).cast("int"), F.lit(0))).over(run)
    least = F.min(F.struct((-F.col("gaps")).alias("gaps"), (ceiling - refilled).alias("milli")))
    return (
        rows.withColumns({"spent": spent, "gaps": gaps, "last": last})
        .withColumn("tokens_milli", refilled - F.col("spent") + least.over(run)["milli"])
        .where(F.col("carried_milli").isNull())
    )


def _carried(before: "DataFrame") -> "DataFrame":
    second = F.unix_seconds("event_time")
    return before.select(
        *KEY,
        second.alias("second"),
        second.alias("felt_to"),
        F.lit(0).cast("bigint").alias("new_ids"),
        F.round(F.col("tokens") * _MILLI).cast("bigint").alias("carried_milli"),
    )


def _with_throttles(seconds: "DataFrame", conf: ProducerIds) -> "DataFrame":
    """What those who asked in the last seconds were told to wait."""
    told = F.struct("second", _throttle_time_ms().alias("ms"))
    asked = F.when((F.col("new_ids") > 0) & (F.col("tokens_milli") < 0), told)
    run = Window.partitionBy(*KEY).orderBy("second").rangeBetween(1 - _span_s(conf), 0)
    return seconds.withColumn("throttles", F.collect_list(asked).over(run))


def _throttle_time_ms() -> Column:
    owed = F.round(-F.col("tokens_milli") * 1_000 / F.col("quota_milli")).cast("bigint")
    return F.when(F.col("tokens_milli") < 0, owed)
