"""Token buckets of producer ids over aligned seconds, in SQL (KIP-936, Kafka's TokenBucket).

Tokens are kept in thousandths as integers: their sums are exact in any order.
"""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from quotaflow.pipelines.config import ProducerIdsSection
from quotaflow.udfs import producer_ids

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY = list(producer_ids.KEY)
# A bucket not touched for a day counts as full again, so that no row depends on all of history.
FULL_AGAIN_S = 86_400
MILLI = 1_000


def rate_period_s(conf: ProducerIdsSection) -> int:
    """How long new ids are felt: what burst the bucket holds, and what a rate is taken over."""
    return conf.num_windows * conf.window_ms // 1_000


def quota_milli(conf: ProducerIdsSection) -> Column:
    """The quota of column `principal`, in thousandths of an id per second."""
    default = F.lit(round(conf.default_quota_per_s * MILLI)).cast("bigint")
    own = [F.lit(x) for user, q in conf.quotas.items() for x in (f"User:{user}", round(q * MILLI))]
    if not own:
        return default
    return F.coalesce(
        F.try_element_at(F.create_map(*own), F.col("principal")).cast("bigint"), default
    )


def with_tokens(
    seconds: "DataFrame", before: "DataFrame | None", conf: ProducerIdsSection
) -> "DataFrame":
    """Kafka's TokenBucket over aligned seconds, as a running sum and a running minimum.

    tokens(i) = min(burst, tokens(i-1) + quota x gap) - new(i) unrolls to
    quota x t(i) - N(i) + min over j <= i of (burst + N(j-1) - quota x t(j)), N the sum of new.
    """
    start_milli = F.lit(rate_period_s(conf)) * F.col("quota_milli")
    rows = seconds.withColumn("carried_milli", F.lit(None).cast("bigint"))
    if before is not None:
        rows = rows.unionByName(_carried(before), allowMissingColumns=True)
    rows = rows.withColumn("quota_milli", quota_milli(conf))
    # Every window here has one partitioning and one order, so that rows are sorted once.
    run = Window.partitionBy(*KEY).orderBy("second")
    gap = F.col("second") - F.lag("felt_to").over(run)
    spent = F.sum(F.col("new_ids") * MILLI).over(run)
    refilled = F.col("quota_milli") * F.col("second")
    ceiling = F.coalesce("carried_milli", start_milli + F.col("spent") - F.col("new_ids") * MILLI)
    # After such a gap the bucket is full, whatever was owed: earlier ceilings hold no longer.
    gaps = F.sum(F.coalesce((gap > FULL_AGAIN_S).cast("int"), F.lit(0))).over(run)
    least = F.min(F.struct((-F.col("gaps")).alias("gaps"), (ceiling - refilled).alias("milli")))
    return (
        rows.withColumns({"spent": spent, "gaps": gaps})
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
        F.round(F.col("tokens") * MILLI).cast("bigint").alias("carried_milli"),
    )


def throttle_time_ms() -> Column:
    """How long until the bucket holds tokens again; null while it does."""
    owed = F.round(-F.col("tokens_milli") * 1_000 / F.col("quota_milli")).cast("bigint")
    return F.when(F.col("tokens_milli") < 0, owed)
