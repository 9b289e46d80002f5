"""`offset_lookups`: requests of clients for offsets, from the bodies of requests."""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.incremental.result import Result, RuleInputs
from quotaflow.schemas.tables.read_faults import OFFSET_LOOKUPS
from quotaflow.schemas.tables.requests import REQUESTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BUCKET_S = 60
_LIST, _EPOCH = "LIST_OFFSETS", "OFFSET_FOR_LEADER_EPOCH"
_POSITIONS = {
    -1: "latest",
    -2: "earliest",
    -3: "max_timestamp",
    -4: "earliest_local",
    -5: "latest_tiered",
    -6: "earliest_pending_upload",
}
"""What a timestamp below 0 asks for (org.apache.kafka.common.requests.ListOffsetsRequest)."""
_EPOCH_END = "epoch_end"
# The two APIs name the same things differently; what one does not have is null.
_BODY = """
    `request` STRUCT<`replicaId`: INT, `topics`: ARRAY<STRUCT<`name`: STRING, `topic`: STRING,
        `partitions`: ARRAY<STRUCT<`partitionIndex`: INT, `partition`: INT, `timestamp`: BIGINT,
            `leaderEpoch`: INT>>>>>,
    `response` STRUCT<`topics`: ARRAY<STRUCT<`name`: STRING, `topic`: STRING,
        `partitions`: ARRAY<STRUCT<`partitionIndex`: INT, `partition`: INT, `errorCode`: INT,
            `offset`: BIGINT, `endOffset`: BIGINT, `leaderEpoch`: INT>>>>>
"""
_NAME = "coalesce(t.name, t.topic) as topic, coalesce(p.partitionIndex, p.partition) as partition"
_REQUESTED = f"""flatten(transform(body.request.topics, t -> transform(t.partitions,
    p -> struct({_NAME}, p.timestamp as timestamp, p.leaderEpoch as epoch))))"""
_ANSWERED = f"""flatten(transform(body.response.topics, t -> transform(t.partitions,
    p -> struct({_NAME}, p.errorCode as error_code, p.leaderEpoch as epoch,
        nullif(coalesce(p.offset, p.endOffset), -1L) as offset))))"""
# A broker answers in an order of its own. Sorted by name both mostly are alike: no search then.
_PAIRS = """
if(transform(asked, q -> struct(q.topic, q.partition))
        = transform(answered, a -> struct(a.topic, a.partition)),
    zip_with(asked, answered, (q, a) -> struct(q as q, a as a)),
    transform(asked, q -> struct(q as q, get(filter(answered,
        a -> a.topic = q.topic and a.partition = q.partition), 0) as a)))"""
_KEY = ("cluster_id", "event_time", "principal", "client_id", "broker_id", "api")


def result() -> Result:
    """The result as the driver takes it."""
    return Result(
        table=OFFSET_LOOKUPS,
        facts=REQUESTS,
        bucket_s=_BUCKET_S,
        lookback_s=0,
        is_relevant=is_asking,
        prepare=lambda requests: requests.select(*_KEY, "body"),
        compute=lookups,
    )


def is_asking() -> Column:
    """Whether a request looks up offsets or checks epochs."""
    return F.col("api").isin(_LIST, _EPOCH)


def lookups(inputs: RuleInputs) -> "DataFrame":
    """Relevant requests to rows of the table."""
    replica = F.col("body.request.replicaId")
    last = F.max(F.when(F.col("a.offset").isNotNull(), F.struct("at", "a.offset")))
    return (
        inputs.facts.withColumns({"body": F.from_json("body", _BODY), "at": F.col("event_time")})
        .withColumn("event_time", F.date_trunc("minute", "event_time"))
        .withColumns({"asked": F.sort_array(F.expr(_REQUESTED)), "answered": F.expr(_ANSWERED)})
        .withColumn("answered", F.sort_array("answered"))
        .select(
            *(*_KEY, "at"),
            F.when(replica >= 0, replica).alias("replica_id"),
            F.col("asked").isNull().alias("is_capped"),
            F.explode_outer(F.expr(_PAIRS)).alias("pair"),
        )
        .where(F.col("is_capped") | F.col("pair").isNotNull())
        .select(*_KEY, "at", "replica_id", "pair.q", "pair.a")
        .withColumns({"topic": F.col("q.topic"), "partition": F.col("q.partition")})
        .withColumns({"position": F.expr(_position()), "error_code": F.col("a.error_code")})
        .groupBy(*_KEY, "replica_id", "topic", "partition", "position", "error_code")
        .agg(
            F.count(F.lit(1)).alias("requests"),
            last["offset"].alias("last_offset"),
            F.count_if(F.expr(_DIVERGED)).alias("diverged_answers"),
        )
        .withColumn("event_date", F.to_date("event_time"))
        .select(OFFSET_LOOKUPS.column_names)
    )


_DIVERGED = f"""api = '{_EPOCH}' and a.error_code = 0
    and (a.offset is null or coalesce(a.epoch, -1) <> q.epoch)"""


def _position() -> str:
    named = " ".join(f"when {number} then '{name}'" for number, name in _POSITIONS.items())
    return (
        f"case when q is null then null when api = '{_EPOCH}' then '{_EPOCH_END}' "
        f"when q.timestamp >= 0 then 'by_timestamp' "
        f"else case q.timestamp {named} else 'unknown' end end"
    )
