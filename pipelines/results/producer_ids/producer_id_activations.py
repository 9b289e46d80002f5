"""Activations in `producer_id_rates`: the first snapshot that has a producer id (KIP-936).

The KIP counts ids of PRODUCE requests, and Kafka's brokers do not log these. Instead, an id counts
at the first snapshot in which a leader has it. That gives no exact time, so ids are rated over the
time since the snapshot before. In a cluster's first snapshot all ids are new, and have no rate.
"""

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.window import Window

from quotaflow.pipelines.config import ProducerIdsSection
from quotaflow.pipelines.incremental.result import LookupTable, Result, RuleInputs
from quotaflow.pipelines.results.producer_ids.producer_id_tokens import MILLI, quota_milli
from quotaflow.schemas.tables.producer_ids import PRODUCER_ID_RATES, PRODUCER_ID_USES
from quotaflow.schemas.tables.snapshots import ACTIVE_PRODUCERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A snapshot is asked for at once, and the log that tells whose ids it saw is read when it is.
_LOG_MAY_LAG_S = 86_400


def result(conf: ProducerIdsSection) -> Result:
    """The result as the driver takes it; all of history says whether an id is new."""
    return Result(
        table=PRODUCER_ID_RATES,
        facts=ACTIVE_PRODUCERS,
        bucket_s=60,
        lookback_s=0,
        prepare=lambda producers: producers,
        compute=partial(activations, conf=conf),
        lookups=(
            LookupTable(ACTIVE_PRODUCERS, valid_from=None),
            LookupTable(PRODUCER_ID_USES, valid_from=None),
        ),
        lookahead_s=_LOG_MAY_LAG_S,
        scope="kind = 'activation'",
    )


def activations(inputs: RuleInputs, *, conf: ProducerIdsSection) -> "DataFrame":
    """Changes of `active_producers` to rows of the table."""
    producers = inputs.lookups[ACTIVE_PRODUCERS.name]
    owners = _owners(inputs.lookups[PRODUCER_ID_USES.name])
    counted = (
        producers.where("NOT is_removed")
        .groupBy("cluster_id", "broker_id", "producer_id")
        .agg(F.min("event_time").alias("event_time"))
        .join(owners, ["cluster_id", "producer_id"], "left")
        .groupBy("cluster_id", "broker_id", "event_time", "principal")
        .agg(F.count(F.lit(1)).alias("new_ids"))
        .join(_intervals(producers), ["cluster_id", "event_time"])
    )
    quota = quota_milli(conf) / MILLI
    rate = F.col("new_ids") / F.col("interval_s")
    return counted.withColumns(
        {
            "event_date": F.to_date("event_time"),
            "event_time": F.date_trunc("second", "event_time"),
            "kind": F.lit("activation"),
            "sightings": F.col("new_ids"),
            "new_ids_exact": F.col("new_ids"),
            "rate_per_s": rate,
            "tokens": F.lit(None).cast("double"),
            "quota_per_s": quota,
            "throttle_time_ms": F.lit(None).cast("bigint"),
            "throttle_time_avg_ms": F.lit(None).cast("double"),
            "is_violating": F.coalesce(rate > quota, F.lit(False)),
        }
    ).select(PRODUCER_ID_RATES.column_names)


def _owners(uses: "DataFrame") -> "DataFrame":
    """The principal of each id: who was given it last, else who named it last."""
    newest = F.max_by("principal", F.struct((F.col("allocations") > 0), "last_seen"))
    owned = uses.where("producer_id IS NOT NULL AND principal IS NOT NULL")
    return owned.groupBy("cluster_id", "producer_id").agg(newest.alias("principal"))


def _intervals(producers: "DataFrame") -> "DataFrame":
    """Seconds from each snapshot that changed something back to the one before it."""
    times = producers.select("cluster_id", "event_time").distinct()
    before = F.lag("event_time").over(Window.partitionBy("cluster_id").orderBy("event_time"))
    micros = F.unix_micros("event_time") - F.unix_micros(before)
    return times.withColumn("interval_s", micros / F.lit(1e6))
