"""The limiter of each answer to a fetch, by the limits that its broker applies (KIP-74), in SQL.

A broker reads one partition after the other, and cuts each read exactly at the rest of its limits.
Only a first batch is always whole (ReplicaManager.readFromLog). So the size shows the limit.
"""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.results.as_of import histories, in_force, with_since
from quotaflow.pipelines.results.quotas.quota_limits import with_limits
from quotaflow.pipelines.spark.frames import null_safe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CAP = "fetch.max.bytes"
DEFAULT_CAP_BYTES = 55 * 1024 * 1024
_CLIENT = ["cluster_id", "event_time", "principal", "client_id"]
_MOST_INT = 2**31 - 1


def with_limiters(
    fetches: "DataFrame", configs: "DataFrame", client_quotas: "DataFrame", refill_s: int
) -> "DataFrame":
    """Add `limiter` (a key of LIMITERS) and `is_filled`; event_time is the start of the minute.

    `refill_s`: the broker's quota windows but one, in seconds, for which a quota may be drawn at
    once (ClientQuotaManager.maxValueInQuotaWindow).
    """
    capped = _with_cap(fetches, configs)
    limited = _with_quota_bytes(capped, client_quotas, refill_s)
    is_filled = F.col("response_bytes") >= F.col("max_bytes")
    return limited.withColumns({"limiter": _limiter(), "is_filled": is_filled}).drop(
        "cap_bytes", "quota_bytes"
    )


def _limiter() -> Column:
    size, most = F.col("response_bytes"), F.least("max_bytes", "cap_bytes", "quota_bytes")
    refused = F.coalesce("error_code", F.lit(0)) != 0
    failed = F.exists("partitions.error_code", lambda code: code != 0)
    named = F.exists("partitions.preferred_read_replica", lambda named: named >= 0)
    sizes, limits = F.col("partitions.bytes"), F.col("partitions.partition_max_bytes")
    # By how much a limit was passed at most. Lambdas are slow: few answers come to one.
    past = F.when(
        F.array_max(sizes) >= F.array_min(limits),
        F.array_max(F.zip_with(sizes, limits, F.try_subtract)),
    )
    empty = (
        F.when(refused | failed, "error")
        .when(named, "redirected")
        .when(F.col("throttle_time_ms") > 0, "throttled")
        .otherwise("wait_timeout")
    )
    return (
        F.when(F.coalesce(size, F.lit(0)) == 0, empty)
        .when((size > most) | (past > 0), "first_batch")
        .when((size == most) & (size == F.col("quota_bytes")), "quota_window")
        .when((size == most) & (size == F.col("max_bytes")), "max_bytes")
        .when(size == most, "broker_cap")
        .when(past == 0, "partition_max_bytes")
        .otherwise("drained")
    )


def _with_cap(fetches: "DataFrame", configs: "DataFrame") -> "DataFrame":
    of_cap = (F.col("entity_type") == "broker") & (F.col("config_key") == CAP)
    caps = (
        with_since(configs)
        .where(of_cap)
        .select(
            "cluster_id",
            "since",
            F.expr("try_cast(entity_name AS INT)").alias("broker_id"),
            F.when(~F.col("is_removed"), F.expr("try_cast(config_value AS BIGINT)")).alias("cap"),
        )
    )
    cap_histories = histories(caps, ["cluster_id", "broker_id"], F.col("cap"), "since")
    cap = F.coalesce(in_force("minute_end"), F.lit(DEFAULT_CAP_BYTES))
    return (
        fetches.join(cap_histories, ["cluster_id", "broker_id"], "left")
        .withColumn("cap_bytes", cap)
        .drop("history")
    )


def _with_quota_bytes(
    fetches: "DataFrame", client_quotas: "DataFrame", refill_s: int
) -> "DataFrame":
    """Add what the client's quota lets through at once; followers have none."""
    clients = fetches.where("replica_id IS NULL").select(*_CLIENT, "minute_end").distinct()
    windows = clients.withColumns(
        {"window_end": F.col("minute_end"), "quota_type": F.lit("consumer_byte_rate")}
    )
    drawn = F.floor(F.col("quota") * refill_s)
    quotas = (
        with_limits(windows, client_quotas)
        .where("quota IS NOT NULL")
        .select(*_CLIENT, drawn.alias("quota_bytes"))
    )
    is_limited = F.col("f.replica_id").isNull() & null_safe(_CLIENT, "f", "q")
    bound = F.coalesce("q.quota_bytes", F.lit(_MOST_INT).cast("bigint"))
    joined = fetches.alias("f").join(F.broadcast(quotas).alias("q"), is_limited, "left")
    return joined.select("f.*", bound.alias("quota_bytes"))
