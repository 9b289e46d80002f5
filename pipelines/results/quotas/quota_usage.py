"""`quota_usage`: clients' usage of their quotas at each broker, and their limits (KIP-13).

A window is aligned, and as long as the broker's rate period. At its end, usage divided by length
equals Kafka's Rate. A row depends only on its window and the one before.
"""

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from quotaflow.pipelines.config import QuotasSection
from quotaflow.pipelines.incremental.result import LookupTable, Result, RuleInputs
from quotaflow.pipelines.results.quotas import quota_charges
from quotaflow.pipelines.results.quotas.quota_charges import REQUEST_TIME
from quotaflow.pipelines.results.quotas.quota_limits import (
    VALID_FROM,
    with_enforcement,
    with_limits,
)
from quotaflow.schemas.tables.quotas import QUOTA_USAGE
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.snapshots import CLIENT_QUOTAS, CONFIGS
from quotaflow.schemas.tables.topology import BROKERS, TOPICS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MICROS_PER_PER_CENT = 1_000_000 / 100
"""Of a second: a thread at work all the time is at 100 %."""


def result(conf: QuotasSection) -> Result:
    """The result as the driver takes it."""
    return Result(
        table=QUOTA_USAGE,
        facts=REQUESTS,
        bucket_s=conf.rate_period_s,
        lookback_s=conf.rate_period_s,
        is_relevant=quota_charges.is_charged,
        prepare=quota_charges.charged,
        compute=partial(usage, conf=conf),
        lookups=(
            LookupTable(CLIENT_QUOTAS, VALID_FROM),
            LookupTable(CONFIGS),
            LookupTable(BROKERS),
            LookupTable(TOPICS),
        ),
    )


def usage(inputs: RuleInputs, *, conf: QuotasSection) -> "DataFrame":
    """Requests, and what is known of quotas, to rows of the table."""
    lookups, rate_period_s = inputs.lookups, conf.rate_period_s
    charges = quota_charges.charges(
        inputs.facts, lookups["topics"], lookups["brokers"], rate_period_s
    )
    window_end = F.timestamp_seconds(F.unix_seconds("event_time") + rate_period_s)
    limited = with_limits(charges.withColumn("window_end", window_end), lookups["client_quotas"])
    return (
        with_enforcement(_with_cause(_with_buckets(limited, rate_period_s)), lookups["configs"])
        .withColumns(
            {
                "event_date": F.to_date("event_time"),
                "headroom": F.col("quota") - F.col("quota_bucket_usage"),
                "is_over": F.coalesce(F.col("quota_bucket_usage") > F.col("quota"), F.lit(False)),
            }
        )
        .select(QUOTA_USAGE.column_names)
    )


def _with_buckets(limited: "DataFrame", rate_period_s: int) -> "DataFrame":
    """Add what the clients that share a limit used, and how full that was at the worst of late."""
    bucket = [
        "cluster_id",
        "broker_id",
        "quota_type",
        "quota_bucket_user",
        "quota_bucket_client_id",
    ]
    over = Window.partitionBy(*bucket).orderBy(F.unix_seconds("event_time"))
    now, before = (
        F.sum("amount").over(over.rangeBetween(shift_s, shift_s)) for shift_s in (0, -rate_period_s)
    )
    fullest = F.greatest("shared", F.coalesce("before", F.lit(0)))
    return limited.withColumns({"shared": now, "before": before}).withColumns(
        {
            "usage": _rate(F.col("amount"), rate_period_s),
            "quota_bucket_usage": _rate(F.col("shared"), rate_period_s),
            "fullness": F.try_divide(_rate(fullest, rate_period_s), "quota"),
        }
    )


def _rate(amount: Column, rate_period_s: int) -> Column:
    is_time = F.col("quota_type") == REQUEST_TIME
    return F.when(is_time, amount / (_MICROS_PER_PER_CENT * rate_period_s)).otherwise(
        amount / rate_period_s
    )


def _with_cause(windows: "DataFrame") -> "DataFrame":
    """Add the quota that seems to have throttled a client's requests at a broker.

    A request is delayed by the quota of what it moves or by that of request time, by the longer
    delay of both; and a delay is as long as a quota is exceeded.
    """
    client = Window.partitionBy(*quota_charges.CLIENT)
    is_time = F.col("quota_type") == REQUEST_TIME
    by_time = F.max(F.when(is_time, F.col("fullness"))).over(client)
    own = F.col("fullness")
    cause = F.when(own >= F.coalesce("by_time", own), F.col("quota_type")).when(
        F.col("by_time").isNotNull(), F.lit(REQUEST_TIME)
    )
    return windows.withColumn("by_time", by_time).withColumn(
        "throttled_by", F.when(F.col("throttled_requests") > 0, cause)
    )
