"""`preferred_replicas`: replicas that consumers read from, and nearer ones (KIP-392)."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quotaflow.pipelines.incremental.result import LookupTable, Result, RuleInputs
from quotaflow.pipelines.results.as_of import with_minute, with_since
from quotaflow.pipelines.results.reads.client_racks import inferred_rack
from quotaflow.pipelines.results.reads.replica_choice import with_choices, with_leader
from quotaflow.pipelines.results.reads.replica_offsets import is_answered
from quotaflow.pipelines.results.replication.replica_states import (
    with_rack,
    with_replicas,
    with_selector,
    with_topic,
)
from quotaflow.schemas.tables.fetches import FETCHES
from quotaflow.schemas.tables.replicas import PREFERRED_REPLICAS
from quotaflow.schemas.tables.snapshots import CONFIGS
from quotaflow.schemas.tables.topology import BROKERS, REPLICAS, TOPICS
from quotaflow.udfs.rules.replica import FOLLOWER_IN_RACK, LEADER_IN_RACK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BUCKET_S = 60
_BROKER_IDS = 2**31
_PARTITION = ("cluster_id", "event_time", "minute_end", "topic", "topic_id", "partition")
_CLIENT = ("principal", "client_id", "declared_rack", "client_rack")


def result(racks: Mapping[str, str]) -> Result:
    """The result as the driver takes it; `racks` are conf's, of clients that tell none."""
    return Result(
        table=PREFERRED_REPLICAS,
        facts=FETCHES,
        bucket_s=_BUCKET_S,
        lookback_s=0,
        is_relevant=is_answered,
        prepare=partial(answers, racks=racks),
        compute=choices,
        lookups=tuple(
            LookupTable(table, reaches_back=True) for table in (REPLICAS, BROKERS, TOPICS, CONFIGS)
        ),
    )


def answers(fetches: "DataFrame", *, racks: Mapping[str, str]) -> "DataFrame":
    """What the rule reads of them; those of followers tell high watermarks alone."""
    is_consumer = F.col("replica_id").isNull()
    declared_rack = F.when(is_consumer, F.col("rack_id"))
    inferred = F.when(is_consumer, inferred_rack(F.col("client_address"), racks))
    return fetches.select(
        *("cluster_id", "broker_id", "event_time", "partitions"),
        *(F.when(is_consumer, F.col(name)).alias(name) for name in ("principal", "client_id")),
        is_consumer.alias("is_consumer"),
        F.when(is_consumer, F.col("api_version")).alias("api_version"),
        declared_rack.alias("declared_rack"),
        F.coalesce(declared_rack, inferred).alias("client_rack"),
    )


def choices(inputs: RuleInputs) -> "DataFrame":
    """Relevant fetches to rows of the table."""
    lookups = {name: with_since(changes) for name, changes in inputs.lookups.items()}
    chosen = (
        _by_partition(_answers(inputs.facts, lookups["topics"]))
        .transform(with_replicas, lookups["replicas"], lookups["brokers"])
        .transform(with_leader)
        .transform(with_selector, lookups["configs"])
        .select("*", F.inline("readers"))
        .transform(with_choices)
        .transform(with_rack, lookups["brokers"])
        .withColumnRenamed("rack", "broker_rack")
    )
    return _with_bytes(chosen).select(PREFERRED_REPLICAS.column_names)


def _answers(facts: "DataFrame", topics: "DataFrame") -> "DataFrame":
    """What each consumer got of a partition from a broker in a minute, and what followers did."""
    size, named = F.col("of.bytes"), F.col("of.preferred_read_replica")
    # One number orders by time and then by broker: Spark would sort, not hash, to keep a struct.
    micros = F.unix_micros("at") - F.unix_micros("event_time")
    each = (
        facts.withColumns({"at": F.col("event_time"), "of": F.explode("partitions")})
        .transform(with_minute)
        .where("coalesce(of.error_code, 0) = 0")
        .select(
            *("cluster_id", "event_time", "minute_end", "broker_id"),
            *("is_consumer", "api_version", *_CLIENT),
            *(F.col(f"of.{name}") for name in ("topic", "topic_id", "partition")),
            F.col("of.high_watermark").alias("high_watermark"),
            F.when(size > 0, F.lit(1)).otherwise(F.lit(0)).alias("fetches"),
            F.coalesce(size, F.lit(0)).alias("bytes"),
            F.when(named >= 0, F.lit(1)).otherwise(F.lit(0)).alias("redirects"),
            F.when(named >= 0, micros * _BROKER_IDS + named).alias("named_last"),
        )
    )
    # Summed by what was told first: few rows are left whose topics are to be looked up.
    preferred_read_replica = (F.col("named_last") % _BROKER_IDS).cast("int")
    summed = _summed(_summed(each).transform(with_topic, topics))
    return summed.withColumn("preferred_read_replica", preferred_read_replica)


def _summed(answers: "DataFrame") -> "DataFrame":
    return answers.groupBy(*_PARTITION, "broker_id", "is_consumer", *_CLIENT).agg(
        F.min("api_version").alias("api_version"),
        *(F.sum(name).alias(name) for name in ("fetches", "bytes", "redirects")),
        *(F.max(name).alias(name) for name in ("named_last", "high_watermark")),
    )


def _by_partition(answers: "DataFrame") -> "DataFrame":
    """A row per partition and minute: its `readers`, and what each broker `told` of it."""
    got = ("fetches", "bytes", "redirects", "preferred_read_replica", "high_watermark")
    is_reader = F.col("is_consumer") & ((F.col("fetches") > 0) | (F.col("redirects") > 0))
    reader = F.struct("broker_id", *_CLIENT, "api_version", *got)
    replica = F.struct("broker_id", "high_watermark")
    return (
        answers.groupBy(*_PARTITION)
        .agg(
            F.collect_list(F.when(is_reader, reader)).alias("readers"),
            F.collect_list(replica).alias("told"),
        )
        .where(F.size("readers") > 0)
    )


def _with_bytes(chosen: "DataFrame") -> "DataFrame":
    crosses = F.col("client_rack") != F.col("broker_rack")
    is_kept = F.col("recommended_reason").isin(LEADER_IN_RACK, FOLLOWER_IN_RACK)
    by_leader = F.filter("told", lambda replica: replica["broker_id"] == F.col("leader_id"))
    high_watermark = F.array_max(F.transform(by_leader, lambda replica: replica["high_watermark"]))
    lag = F.try_subtract(high_watermark, F.col("high_watermark"))
    return chosen.withColumns(
        {
            "event_date": F.to_date("event_time"),
            "is_before_snapshot": F.exists(
                "replicas", lambda replica: replica["seen_at"] >= F.col("minute_end")
            ),
            "is_rack_inferred": F.col("declared_rack").isNull() & F.col("client_rack").isNotNull(),
            "hw_lag": F.when(
                F.col("broker_id") != F.col("leader_id"),
                F.when(lag > 0, lag).when(lag <= 0, F.lit(0)),
            ),
            "cross_rack_bytes": F.when(crosses, F.col("bytes")).when(~crosses, F.lit(0)),
            "avoidable_bytes": F.when(~crosses, F.lit(0)).when(
                crosses, F.when(is_kept, F.col("bytes")).when(~is_kept, F.lit(0))
            ),
        }
    )
