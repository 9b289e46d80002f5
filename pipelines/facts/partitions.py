"""The `partitions` column: request and response of PRODUCE and FETCH, partition by partition.

In request order, then the partitions that only the response names: with a fetch session (KIP-227) a
response may have partitions that its request did not list.

Spark does not compile lambdas, and each field that one reads costs time. Most lines have at most
one topic, and either the same partitions on both sides or none on one side: these plain lines are
zipped list by list, and only the others go through lambdas.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_NAMED = "coalesce(t.topic, t.name) as topic, t.topicId as topic_id"


def _by_api(produce: str, fetch: str) -> str:
    return f"case api when 'PRODUCE' then {produce} when 'FETCH' then {fetch} end"


def _first(side: str, produce: tuple[str, str], fetch: tuple[str, str]) -> dict[str, str]:
    """The number of topics of a request or response, and the first topic with its partitions."""
    topics = [produce[0], fetch[0]]
    return {
        f"{side}_topics": _by_api(*(f"size({t})" for t in topics)),
        f"{side}_topic": _by_api(
            *(f"coalesce(get({t}, 0).topic, get({t}, 0).name)" for t in topics)
        ),
        f"{side}_id": _by_api(*(f"get({t}, 0).topicId" for t in topics)),
        side: _by_api(*(f"coalesce(get({t}, 0).{p}, array())" for t, p in (produce, fetch))),
    }


_RESPONSES = "line.r.response.responses"
_FIRST = _first(
    "req", ("line.r.request.topicData", "partitionData"), ("line.r.request.topics", "partitions")
) | _first("resp", (_RESPONSES, "partitionResponses"), (_RESPONSES, "partitions"))
_INDEX = {
    "req_index": _by_api("req.index", "req.partition"),
    "resp_index": _by_api("resp.index", "resp.partitionIndex"),
}
_IS_PLAIN = f"""
coalesce(req_topics, 0) <= 1 and coalesce(resp_topics, 0) <= 1 and (
    size(req) = 0 or size(resp) = 0
    or {_INDEX["req_index"]} = {_INDEX["resp_index"]}
        and coalesce(req_id, req_topic) <=> coalesce(resp_id, resp_topic))"""

_REQUESTED = f"""
case when {_IS_PLAIN} then null else case api
when 'PRODUCE' then flatten(transform(line.r.request.topicData, t -> transform(t.partitionData,
    p -> struct({_NAMED}, p.index as partition, null as fetch_offset, null as max_bytes,
        null as follower_start, bigint(p.recordsSizeInBytes) as bytes))))
when 'FETCH' then flatten(transform(line.r.request.topics, t -> transform(t.partitions,
    p -> struct({_NAMED}, p.partition as partition, p.fetchOffset as fetch_offset,
        p.partitionMaxBytes as max_bytes, nullif(p.logStartOffset, -1L) as follower_start,
        null as bytes))))
end end"""

_ANSWERED = f"""
case when {_IS_PLAIN} then null else case api
when 'PRODUCE' then flatten(transform(line.r.response.responses, t -> transform(
    t.partitionResponses, p -> struct({_NAMED}, p.index as partition, p.errorCode as error_code,
        null as high_watermark, null as last_stable_offset, p.logStartOffset as log_start_offset,
        null as preferred_read_replica, null as bytes))))
when 'FETCH' then flatten(transform(line.r.response.responses, t -> transform(t.partitions,
    p -> struct({_NAMED}, p.partitionIndex as partition, p.errorCode as error_code,
        p.highWatermark as high_watermark, p.lastStableOffset as last_stable_offset,
        p.logStartOffset as log_start_offset, p.preferredReadReplica as preferred_read_replica,
        bigint(p.recordsSizeInBytes) as bytes))))
end end"""


def _repeated(value: str) -> str:
    return f"array_repeat({value}, greatest(size(req), size(resp)))"


def _either(name: str) -> str:
    return _repeated(
        f"case when size(req) = 0 then resp_{name} when size(resp) = 0 then req_{name} "
        f"else coalesce(req_{name}, resp_{name}) end"
    )


def _fetched(values: str) -> str:
    return f"if(api = 'FETCH', {values}, array())"


_STARTS = "req.logStartOffset"
# arrays_zip fills a list that is too short with nulls.
_FOLLOWER_STARTS = f"""
case when array_max({_STARTS}) = -1 then array() when array_min({_STARTS}) >= 0 then {_STARTS}
else transform({_STARTS}, start -> nullif(start, -1L)) end"""
_PLAIN = {
    "topic": _either("topic"),
    "topic_id": _either("id"),
    "partition": "if(size(req) = 0, resp_index, req_index)",
    "in_request": _repeated("size(req) > 0"),
    "in_response": _repeated("size(resp) > 0"),
    "fetch_offset": _fetched("req.fetchOffset"),
    "partition_max_bytes": _fetched("req.partitionMaxBytes"),
    "high_watermark": _fetched("resp.highWatermark"),
    "last_stable_offset": _fetched("resp.lastStableOffset"),
    "log_start_offset": "resp.logStartOffset",
    "follower_log_start_offset": _fetched(_FOLLOWER_STARTS),
    "preferred_read_replica": _fetched("resp.preferredReadReplica"),
    "bytes": f"cast({_by_api('req.recordsSizeInBytes', 'resp.recordsSizeInBytes')} "
    "as array<bigint>)",
    "error_code": "resp.errorCode",
}


def _keys(partitions: str) -> str:
    return (
        f"transform({partitions}, p -> struct(coalesce(p.topic_id, p.topic) as topic, p.partition))"
    )


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


# Most requests and responses list the same partitions in the same order: then no search is needed.
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
    """Add `partitions` to parsed lines; null for other APIs than PRODUCE and FETCH."""
    steps: tuple[dict[str, str], ...] = (
        _FIRST,
        {
            **_INDEX,
            "is_plain": _IS_PLAIN,
            "requested": _or_empty(_REQUESTED),
            "answered": _or_empty(_ANSWERED),
        },
        {"requested_keys": _keys("requested"), "answered_keys": _keys("answered")},
    )
    for step in steps:
        lines = lines.withColumns({name: F.expr(sql) for name, sql in step.items()})
    named = [name for step in steps for name in step]
    plain = F.arrays_zip(*(F.expr(sql).alias(name) for name, sql in _PLAIN.items()))
    whole = F.when(F.col("is_plain"), plain).otherwise(F.expr(_PARTITIONS))
    return lines.withColumn("partitions", whole).drop(*named)


def _or_empty(array: str) -> str:
    return f"coalesce({array}, case when api in ('PRODUCE', 'FETCH') then array() end)"
