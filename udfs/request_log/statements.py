"""The SQL of the line parser, made of the shape of a line."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from quotaflow.schemas import events
from quotaflow.udfs.request_log import shape

ByApi = Mapping[str, Mapping[str, tuple[str, str]]]

TYPED = {
    "FETCH": ("topics", "partitions", "partition", "partitions", "partitionIndex"),
    "PRODUCE": ("topicData", "partitionData", "index", "partitionResponses", "index"),
}
"""API -> in a request the lists of topics and of partitions, and the number; then in a response."""


@cache
def text(name: str) -> str:
    """One of the SQL texts beside this module."""
    return (files("quotaflow.udfs.request_log") / f"{name}.sql").read_text(encoding="utf-8")


PARSED = f"""
CREATE OR REPLACE TEMP TABLE parsed AS
SELECT * EXCLUDE (j), j.ts AS ts, j.broker AS broker, j.weight AS weight, j.r AS r
FROM (
    SELECT *, TRY(json_transform(text, '{json.dumps(shape.structure())}')) AS j
    FROM ({text("canonical")})
)"""
"""Every envelope as nested columns of text; null where it is no JSON."""


_HAS_API = (
    "r.requestHeader.requestApiKeyName IS NOT NULL OR r.requestHeader.requestApiKey IS NOT NULL"
)


def line_values(where: str = _HAS_API) -> str:
    """One row per parsed line: each value cast, and whether one could not be."""
    numbers = ", ".join(f"{cast}({path}) AS {name}" for name, (cast, path) in shape.NUMBERS.items())
    texts = ", ".join(f"{path} AS {name}" for name, path in shape.TEXTS.items())
    times = ", ".join(shape.TIMES)
    given = " + ".join(f"CAST({path} IS NOT NULL AS INT)" for _, path in shape.NUMBERS.values())
    read = " + ".join(f"CAST({name} IS NOT NULL AS INT)" for name in shape.NUMBERS)
    return f"""
SELECT *,
    greatest({times}) > {events.MAX_TIME_MS} OR least({times}) < -{events.MAX_TIME_MS} AS is_absurd,
    given > {read} AS unreadable_numbers
FROM (
    SELECT * EXCLUDE (r, text), {numbers}, {texts}, {given} AS given,
        {_is_of_raft_log()} AS is_of_raft_log,
        r.request.forgottenTopicsData IS NOT NULL AS has_forgotten,
        r.request IS NOT NULL AS has_request,
        r.response IS NOT NULL AS has_response,
        r.response.acceptedCompressionTypes AS accepted_compression_types,
        r.response.requestedMetrics AS requested_metrics
    FROM parsed
    WHERE {where}
)"""


_WITHOUT_ZONE = (
    "SELECT *, instant AS ts_us, CAST(NULL AS BIGINT) AS other_us, false AS ambiguous_time "
    "FROM stated"
)
"""The times of lines where one without a zone is not read: to plan less takes less time."""


@cache
def _lines(has_zone: bool) -> str:
    timed = text("local_times") if has_zone else _WITHOUT_ZONE
    return text("lines").replace("{line_values}", line_values()).replace("{timed}", timed)


def lines(sampling: Mapping[str, int], *, has_zone: bool) -> str:
    """One row per parsed line, as lines.sql says. `sampling` has n of one of n for some APIs.

    `has_zone` is whether times without a zone are in that of conf.
    """
    cases = " ".join(f"WHEN '{api}' THEN {n}" for api, n in sorted(sampling.items()))
    one_of = f"CASE api {cases} ELSE 1 END" if cases else "1"
    return _lines(has_zone).replace("{one_of}", one_of)


def telemetry() -> str:
    """What PUSH_TELEMETRY and GET_TELEMETRY_SUBSCRIPTIONS say beyond columns of `requests`."""
    texts = ("api_name", "request_instance_id", "metrics", "response_instance_id")
    names = ", ".join([*texts, *shape.TELEMETRY, "accepted_compression_types", "requested_metrics"])
    listed = ", ".join(f"'{api}'" for api in events.TELEMETRY_APIS)
    # Before the casts: DuckDB does not move a condition below them.
    where = f"r.requestHeader.requestApiKeyName IN ({listed})"
    return f"SELECT line, {names} FROM ({line_values(where)})"


def _is_of_raft_log() -> str:
    others = f"lambda t: t.topicId IS DISTINCT FROM '{events.RAFT_TOPIC_ID}'"
    return (
        "coalesce(len(r.request.topics) > 0 "
        f"AND len(list_filter(r.request.topics, {others})) = 0, false)"
    )


_TOPIC = "coalesce(t.topic, t.name) AS topic, t.topicId AS topic_id"


def _partitions(api: str, topics: str, inner: str, index: str, by_api: ByApi) -> str:
    values = {"partition": ("int32", index), **by_api[api]}
    numbers = ", ".join(f"{cast}(p.{name}) AS {to}" for to, (cast, name) in values.items())
    bad = " OR ".join(f"p.{name} IS NOT NULL AND {to} IS NULL" for to, (_, name) in values.items())
    # A column that only the other API has, too.
    columns = dict.fromkeys(name for each in by_api.values() for name in each)
    listed = ", ".join(name if name in values else f"NULL AS {name}" for name in columns)
    return f"""
SELECT line, topic, topic_id, partition, {listed}, p IS NULL OR {bad} AS is_bad
FROM (
    SELECT line, topic, topic_id, p, {numbers}
    FROM (
        SELECT line, {_TOPIC}, unnest(t.{inner}) AS p
        FROM (
            SELECT line, unnest({topics}) AS t FROM parsed
            WHERE r.requestHeader.requestApiKeyName = '{api}'
        )
    )
)"""


REQUESTED = " UNION ALL ".join(
    _partitions(api, f"r.request.{topics}", inner, index, shape.REQUESTED)
    for api, (topics, inner, index, _, _) in TYPED.items()
)


ANSWERED = " UNION ALL ".join(
    _partitions(api, "r.response.responses", inner, index, shape.ANSWERED)
    for api, (_, _, _, inner, index) in TYPED.items()
)


FORGOTTEN = f"""
SELECT line, topic, topic_id, int32(p) AS partition, p IS NULL OR int32(p) IS NULL AS is_bad
FROM (
    SELECT line, {_TOPIC}, unnest(t.partitions) AS p
    FROM (
        SELECT line, unnest(r.request.forgottenTopicsData) AS t FROM parsed
        WHERE r.requestHeader.requestApiKeyName = 'FETCH'
    )
)"""
"""Partitions that FETCH takes out of its session."""

_LISTS = """
    r.request IS NOT NULL AND r.request.{topics} IS NULL
    OR r.response IS NOT NULL AND r.response.responses IS NULL
    OR len(list_filter(r.request.{topics}, lambda t: t.{inner} IS NULL)) > 0
    OR len(list_filter(r.response.responses, lambda t: t.{answered} IS NULL)) > 0
"""
DOUBTFUL = " UNION ALL ".join(
    f"SELECT line, text, '{api}' AS api FROM parsed "
    f"WHERE r.requestHeader.requestApiKeyName = '{api}' AND ("
    f"{_LISTS.format(topics=topics, inner=inner, answered=answered_inner)})"
    for api, (topics, inner, _, answered_inner, _) in TYPED.items()
)
"""Lines of PRODUCE and FETCH in which a list is missing, or is none."""
