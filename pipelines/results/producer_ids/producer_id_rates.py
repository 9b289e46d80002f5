"""`producer_id_rates`: new producer ids per principal, broker and second (KIP-936).

Windows are aligned: the rate at a second is the sum over `num_windows` aligned windows, the last of
which has that second, divided by the rate period. So a row does not depend on when a run started.
"""

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from quotaflow.pipelines.config import ProducerIdsSection
from quotaflow.pipelines.config.results import MAX_IDS_PER_S, MIN_IDS_PER_S
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.incremental.result import Result, RuleInputs
from quotaflow.pipelines.results.producer_ids.producer_id_tokens import (
    FULL_AGAIN_S,
    KEY,
    MILLI,
    rate_period_s,
    throttle_time_ms,
    with_tokens,
)
from quotaflow.schemas.table import sql_type
from quotaflow.schemas.tables.producer_ids import PRODUCER_ID_RATES
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.udfs import producer_ids

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COUNTED = ("sightings", "new_ids", "new_ids_exact")
_SIGHTINGS = ", ".join(f"{f.name} {sql_type(f.type)}" for f in producer_ids.SIGHTINGS)
_FLAGGED = f"{_SIGHTINGS}, is_new_exact BOOLEAN, is_new BOOLEAN"


def result(conf: ProducerIdsSection) -> Result:
    """The result as the driver takes it; raises ConfigError for a quota out of bounds."""
    for user, quota in [("everybody else", conf.default_quota_per_s), *conf.quotas.items()]:
        if not MIN_IDS_PER_S <= quota <= MAX_IDS_PER_S:
            raise ConfigError(
                f"the producer-id quota of {user} is {quota} per second, and must be between "
                f"{MIN_IDS_PER_S} and {MAX_IDS_PER_S}"
            )
    memory_s = 2 * conf.filter_window_ms // 1_000
    return Result(
        table=PRODUCER_ID_RATES,
        facts=REQUESTS,
        bucket_s=60,
        lookback_s=memory_s + rate_period_s(conf),
        is_relevant=is_sighting,
        prepare=sightings,
        compute=partial(rates, conf=conf),
        carry_s=FULL_AGAIN_S,
        carry_key=tuple(KEY),
        warm_up_s=rate_period_s(conf),
        scope="kind = 'allocation'",
    )


def is_sighting() -> Column:
    """Whether a request shows a producer id of its principal: handed out, or of a transaction.

    Batched ADD_PARTITIONS_TO_TXN (version 4 and later) go between brokers and show none.
    """
    shows = (F.col("producer_id") >= 0) & (F.coalesce(F.col("error_code"), F.lit(0)) == 0)
    return shows & F.col("principal").isNotNull()


def sightings(requests: "DataFrame") -> "DataFrame":
    """What the rule reads of them."""
    return requests.select(
        "cluster_id",
        "broker_id",
        "principal",
        F.lit("allocation").alias("kind"),
        "event_time",
        F.unix_millis("event_time").alias("event_ms"),
        "producer_id",
    )


def rates(inputs: RuleInputs, *, conf: ProducerIdsSection) -> "DataFrame":
    """Sightings to rows of the table; those before `known.since` are only remembered."""
    seconds = _per_second(_flagged(inputs.facts, conf), conf)
    if inputs.since is not None:
        seconds = _since(seconds, int(inputs.since.timestamp()))
    return (
        _felt(_changes(with_tokens(seconds, inputs.carried_rows, conf)), conf)
        .withColumns(
            {
                "event_time": F.timestamp_seconds("second"),
                "event_date": F.to_date(F.timestamp_seconds("second")),
                "tokens": F.col("tokens_milli") / MILLI,
                "quota_per_s": F.col("quota_milli") / MILLI,
                "is_violating": F.col("tokens_milli") < 0,
                "throttle_time_ms": F.coalesce(throttle_time_ms(), F.lit(0).cast("bigint")),
            }
        )
        .select(PRODUCER_ID_RATES.column_names)
    )


def _flagged(seen: "DataFrame", conf: ProducerIdsSection) -> "DataFrame":
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
    is_known = (last_window == window) | (in_first_half & (last_window == window - 1))
    return ~F.coalesce(is_known, F.lit(False))


def _per_second(flagged: "DataFrame", conf: ProducerIdsSection) -> "DataFrame":
    """Seconds that have sightings, each with the last second that feels them."""
    window_s = conf.window_ms // 1_000
    felt_to = F.floor(F.col("second") / window_s) * window_s + F.lit(rate_period_s(conf) - 1)
    # Partitioned by KEY alone, so that every step from here on needs no further shuffle.
    return (
        flagged.repartition(*KEY)
        .groupBy(*KEY, F.floor(F.col("event_ms") / 1_000).alias("second"))
        .agg(
            F.count(F.lit(1)).alias("sightings"),
            F.sum(F.col("is_new").cast("bigint")).alias("new_ids"),
            F.sum(F.col("is_new_exact").cast("bigint")).alias("new_ids_exact"),
        )
        .withColumns({"felt_to": felt_to, "felt_ids": F.col("new_ids")})
    )


def _since(seconds: "DataFrame", since_s: int) -> "DataFrame":
    """What is felt from a second on: of earlier ones, that they are felt still."""
    own = F.col("second") >= since_s
    return seconds.where(F.col("felt_to") >= since_s).withColumns(
        {name: F.when(own, F.col(name)).otherwise(0) for name in _COUNTED}
        | {"second": F.greatest("second", F.lit(since_s))}
    )


def _changes(seconds: "DataFrame") -> "DataFrame":
    """The seconds at which what is felt changes: sightings come, or are felt no longer."""
    zero, one = F.lit(0).cast("bigint"), F.lit(1).cast("bigint")
    is_over = (F.col("new_ids") > 0) & (F.col("tokens_milli") < 0)
    felt = {
        "felt_ids": F.col("felt_ids"),
        "felt": one,
        "waits_ms": F.when(is_over, throttle_time_ms()).otherwise(zero),
        "waits": F.when(is_over, one).otherwise(zero),
    }
    begin = [F.col("second"), *(column.alias(name) for name, column in felt.items())]
    end = [(F.col("felt_to") + 1).alias("second")]
    end += [(-column).alias(name) for name, column in felt.items()]
    bucket = F.struct("second", "tokens_milli").alias("bucket")
    nothing = [
        *(zero.alias(name) for name in _COUNTED),
        F.when(F.lit(False), bucket).alias("bucket"),
    ]
    both = F.array(F.struct(*begin, *_COUNTED, bucket), F.struct(*end, *nothing))
    return (
        seconds.select(*KEY, "quota_milli", F.inline(both))
        .groupBy(*KEY, "quota_milli", "second")
        .agg(
            *(F.sum(name).alias(name) for name in (*felt, *_COUNTED)),
            F.max("bucket").alias("bucket"),
        )
    )


def _felt(changes: "DataFrame", conf: ProducerIdsSection) -> "DataFrame":
    """A row for each second that feels sightings: from one change to the next."""
    run = Window.partitionBy(*KEY).orderBy("second")
    sums = {name: F.sum(name).over(run) for name in ("felt_ids", "felt", "waits_ms", "waits")}
    measured = {
        "bucket": F.last("bucket", ignorenulls=True).over(run),
        "next": F.lead("second").over(run),
    }
    spread = changes.withColumns(sums | measured).where("felt > 0")
    spread = spread.withColumn("at", F.explode(F.sequence("second", F.col("next") - 1)))
    refilled = F.col("quota_milli") * (F.col("at") - F.col("bucket.second"))
    zero, own = F.lit(0).cast("bigint"), F.col("at") == F.col("second")
    return spread.select(
        *KEY,
        F.col("at").alias("second"),
        "quota_milli",
        (F.col("felt_ids") / F.lit(float(rate_period_s(conf)))).alias("rate_per_s"),
        *(F.when(own, F.col(name)).otherwise(zero).alias(name) for name in _COUNTED),
        F.least(
            F.lit(rate_period_s(conf)) * F.col("quota_milli"),
            F.col("bucket.tokens_milli") + refilled,
        ).alias("tokens_milli"),
        F.coalesce(F.try_divide("waits_ms", "waits"), F.lit(0.0)).alias("throttle_time_avg_ms"),
    )
