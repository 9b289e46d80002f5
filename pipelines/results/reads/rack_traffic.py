"""`rack_traffic`: bytes produced, consumed and replicated between racks, from requests."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.incremental.result import LookupTable, Result, RuleInputs
from quotaflow.pipelines.results.as_of import with_minute, with_since
from quotaflow.pipelines.results.reads.client_racks import inferred_rack
from quotaflow.pipelines.results.replication.replica_states import with_rack
from quotaflow.pipelines.results.weights import count, weight
from quotaflow.schemas.tables.replicas import RACK_TRAFFIC
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.topology import BROKERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BUCKET_S = 60
_SIDES = ("cluster_id", "event_time", "minute_end", "flow", "broker_id", "follower_id")
_RACK = ("client_rack", "is_rack_inferred")


def result(racks: Mapping[str, str]) -> Result:
    """The result as the driver takes it; `racks` are conf's, of clients that tell none."""
    return Result(
        table=RACK_TRAFFIC,
        facts=REQUESTS,
        bucket_s=_BUCKET_S,
        lookback_s=0,
        is_relevant=may_have_moved,
        prepare=partial(moved, racks=racks),
        compute=between_racks,
        lookups=(LookupTable(BROKERS, reaches_back=True),),
    )


def may_have_moved() -> Column:
    """Whether a request is PRODUCE or FETCH and tells of bytes."""
    return F.col("api").isin("PRODUCE", "FETCH") & (F.array_max("partitions.bytes") > 0)


def moved(requests: "DataFrame", *, racks: Mapping[str, str]) -> "DataFrame":
    """What they moved, with what is known of the other side's rack; nothing where all was refused.

    A partition that was refused moved nothing; without acks (acks=0) no refusal is ever told.
    """
    errors = F.col("partitions.error_code")
    is_whole = (F.coalesce(F.array_max(errors), F.lit(0)) == 0) & (
        F.coalesce(F.array_min(errors), F.lit(0)) == 0
    )
    # Mostly nothing was refused, and each field that a lambda reads costs.
    sizes = F.when(is_whole, F.col("partitions.bytes")).otherwise(
        F.expr(
            "transform(filter(partitions, of -> coalesce(of.error_code, 0) = 0), of -> of.bytes)"
        )
    )
    is_follower, is_consumer = F.col("replica_id").isNotNull(), F.col("api") == "FETCH"
    flow = F.when(~is_consumer, "produced").when(is_follower, "replicated").otherwise("consumed")
    declared = F.when(is_consumer & ~is_follower, F.col("rack_id"))
    inferred = F.when(~is_follower, inferred_rack(F.col("client_address"), racks))
    return requests.select(
        *("cluster_id", "broker_id", "event_time", "weight"),
        F.aggregate(sizes, F.lit(0).cast("bigint"), _with_what_came).alias("bytes"),
        flow.alias("flow"),
        F.col("replica_id").alias("follower_id"),
        F.coalesce(declared, inferred).alias("client_rack"),
        (declared.isNull() & inferred.isNotNull()).alias("is_rack_inferred"),
    )


def _with_what_came(sum_: Column, size: Column) -> Column:
    return sum_ + F.when(size > 0, size).otherwise(F.lit(0))


def between_racks(inputs: RuleInputs) -> "DataFrame":
    """What moved to rows of the table."""
    brokers = with_since(inputs.lookups["brokers"])
    sides = (
        with_minute(inputs.facts)
        .groupBy(*_SIDES, *_RACK)
        # Asked before the sums, this would add the list up once more for each request.
        .agg(
            count(F.col("bytes") > 0).alias("requests"),
            F.sum(F.col("bytes") * weight()).alias("bytes"),
        )
        .where("bytes > 0")
    )
    broker_id = F.col("broker_id")
    of_brokers = with_rack(sides, brokers).withColumnRenamed("rack", "broker_rack")
    swapped = of_brokers.withColumns({"at": broker_id, "broker_id": F.col("follower_id")})
    of_both = with_rack(swapped, brokers).withColumns(
        {"broker_id": F.col("at"), "client_rack": F.coalesce("client_rack", "rack")}
    )
    crosses = F.col("client_rack") != F.col("broker_rack")
    return (
        of_both.groupBy("cluster_id", "event_time", "flow", "broker_id", "broker_rack", *_RACK)
        .agg(F.sum("requests").alias("requests"), F.sum("bytes").alias("bytes"))
        .withColumns(
            {
                "event_date": F.to_date("event_time"),
                "cross_rack_bytes": F.when(crosses, F.col("bytes")).when(~crosses, F.lit(0)),
            }
        )
        .select(RACK_TRAFFIC.column_names)
    )
