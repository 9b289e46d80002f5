"""The `partitions` column: what PRODUCE and FETCH asked and got, partition by partition.

In request order, then the partitions only the response names: with a fetch session (KIP-227) a
response may hold partitions its request did not list.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_NAMED = "coalesce(t.topic, t.name) as topic, t.topicId as topic_id"

_REQUESTED = f"""
case api
when 'PRODUCE' then flatten(transform(line.r.request.topicData, t -> transform(t.partitionData,
    p -> struct({_NAMED}, p.index as partition, null as fetch_offset, null as max_bytes,
        null as follower_start, p.recordsSizeInBytes as bytes))))
when 'FETCH' then flatten(transform(line.r.request.topics, t -> transform(t.partitions,
    p -> struct({_NAMED}, p.partition as partition, p.fetchOffset as fetch_offset,
        p.partitionMaxBytes as max_bytes, nullif(p.logStartOffset, -1L) as follower_start,
        null as bytes))))
end"""

_ANSWERED = f"""
case api
when 'PRODUCE' then flatten(transform(line.r.response.responses, t -> transform(
    t.partitionResponses, p -> struct({_NAMED}, p.index as partition, p.errorCode as error_code,
        null as high_watermark, null as last_stable_offset, p.logStartOffset as log_start_offset,
        null as preferred_read_replica, null as bytes))))
when 'FETCH' then flatten(transform(line.r.response.responses, t -> transform(t.partitions,
    p -> struct({_NAMED}, p.partitionIndex as partition, p.errorCode as error_code,
        p.highWatermark as high_watermark, p.lastStableOffset as last_stable_offset,
        p.logStartOffset as log_start_offset, p.preferredReadReplica as preferred_read_replica,
        p.recordsSizeInBytes as bytes))))
end"""


def _keys(of: str) -> str:
    return f"transform({of}, p -> struct(coalesce(p.topic_id, p.topic) as topic, p.partition))"


def _merged(q: str, a: str) -> str:
    def either(field: str) -> str:
        return f"coalesce({q}.{field}, {a}.{field})" if q != "null" else f"{a}.{field}"

    def requested(field: str) -> str:
        return f"{q}.{field}" if q != "null" else "cast(null as bigint)"

    return f"""struct({either("topic")} as topic, {either("topic_id")} as topic_id,
        {either("partition")} as partition, {q} is not null as in_request,
        {a} is not null as in_response, {requested("fetch_offset")} as fetch_offset,
        {requested("max_bytes")} as partition_max_bytes, {a}.high_watermark as high_watermark,
        {a}.last_stable_offset as last_stable_offset, {a}.log_start_offset as log_start_offset,
        {requested("follower_start")} as follower_log_start_offset,
        {a}.preferred_read_replica as preferred_read_replica, {either("bytes")} as bytes,
        {a}.error_code as error_code)"""


# Most requests and responses list the same partitions in the same order: no search then.
_PARTITIONS = f"""
case when requested_keys = answered_keys then
    zip_with(requested, answered, (q, a) -> {_merged("q", "a")})
when api in ('PRODUCE', 'FETCH') then concat(
    zip_with(requested,
        transform(requested_keys, k -> get(answered, int(array_position(answered_keys, k)) - 1)),
        (q, a) -> {_merged("q", "a")}),
    transform(
        filter(answered, (a, i) -> not array_contains(requested_keys, get(answered_keys, i))),
        a -> {_merged("null", "a")}))
end"""


def with_partitions(lines: DataFrame) -> DataFrame:
    """Add `partitions` to parsed lines; null for APIs other than PRODUCE and FETCH."""
    return (
        lines.withColumn("requested", F.expr(_or_empty(_REQUESTED)))
        .withColumn("answered", F.expr(_or_empty(_ANSWERED)))
        .withColumn("requested_keys", F.expr(_keys("requested")))
        .withColumn("answered_keys", F.expr(_keys("answered")))
        .withColumn("partitions", F.expr(_PARTITIONS))
        .drop("requested", "answered", "requested_keys", "answered_keys")
    )


def _or_empty(array: str) -> str:
    return f"coalesce({array}, case when api in ('PRODUCE', 'FETCH') then array() end)"
