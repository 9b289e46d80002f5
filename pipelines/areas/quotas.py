"""Client quotas: whom they throttled, what is near its limit, what limits a name, who shares it."""

from collections.abc import Iterator, Sequence

from quotaflow.pipelines.areas import quota_step
from quotaflow.pipelines.areas.finding import (
    NOTHING,
    NOW,
    SOON,
    Finding,
    Problem,
    RowProblem,
    client_text,
    moment,
)
from quotaflow.pipelines.areas.question import Question, Row, undiagnosed
from quotaflow.pipelines.areas.quota_step import LEAST_MS
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.udfs.counted import counted, noun
from quotaflow.udfs.rules.quota import NEAR_SHARE, QuotaEntity

NAME = "quotas"
TABLES = ("quota_usage", "client_quotas")

_UNITS = {
    "producer_byte_rate": "bytes/s",
    "consumer_byte_rate": "bytes/s",
    "request_percentage": "% of a thread",
    "controller_mutation_rate": "partitions/s",
}
_MINUTE_S = 60
_IN_OWN = "; in one of the broker's own windows the use was over the quota"
_MAX_SHARERS = 5
_EVIDENCE = {
    "principal": "principal",
    "client_id": "client_id",
    "quota_type": "quota_type",
    "event_time": "event_time",
    "broker_id": "broker_id",
    "usage": "most_used",
    "quota_bucket_usage": "quota_bucket_usage",
    "quota": "quota",
    "requests": "all_requests",
    "throttled": "all_throttled_requests",
    "throttle_time_ms": "all_throttle_time_ms",
    "throttled_by": "mostly_throttled_by",
    "is_estimated": "is_estimated",
    "share_requests": "all_share_requests",
    "is_lower_bound": "is_lower_bound",
    "enforcement": "enforcement",
}
"""Columns of the evidence, each from a column of the query."""

# The fullest window of a kind of quota is shown, because it is what throttles. The cause may be in
# another window: a burst across two windows fills neither. A rolled-up row has its greatest usage.
_LIMITS = (
    "SELECT *, coalesce(peak_usage, usage) AS most_used FROM (SELECT principal, client_id, "
    "quota_type, event_time, rolled_up_s, broker_id, usage, peak_usage, quota, quota_level, "
    "quota_bucket_user, quota_bucket_client_id, quota_bucket_usage, is_estimated, is_lower_bound, "
    "enforcement, "
    "row_number() OVER (PARTITION BY {who} ORDER BY quota_bucket_usage / quota DESC NULLS LAST, "
    "usage DESC, event_time DESC, broker_id) AS fullest, "
    "sum(request_count) OVER (PARTITION BY {who}) AS all_requests, "
    "sum(throttled_requests) OVER (PARTITION BY {who}) AS all_throttled_requests, "
    "sum(throttle_time_ms) OVER (PARTITION BY {who}) AS all_throttle_time_ms, "
    "sum(share_requests) OVER (PARTITION BY {who}) AS all_share_requests, "
    "first_value(throttled_by) OVER (PARTITION BY {who} ORDER BY throttled_by IS NULL, "
    "throttle_time_ms DESC, event_time DESC, broker_id) AS mostly_throttled_by "
    "FROM quota_usage WHERE {of_cluster} AND {is_client} AND {within:event_time}) AS ranked "
    "WHERE fullest = 1 "
    "ORDER BY all_throttle_time_ms DESC, quota_bucket_usage / quota DESC NULLS LAST, "
    "usage DESC, principal, client_id, quota_type"
    " LIMIT {limit}"
).replace("{who}", "principal, client_id, quota_type")
_SHARERS = (
    "SELECT principal, client_id, sum(usage) AS usage FROM quota_usage "
    "WHERE {of_cluster} AND quota_type = {quota_type} AND event_time = {event_time} "
    "AND (broker_id IS NOT DISTINCT FROM {broker_id}) AND quota_level = {quota_level} "
    "AND (quota_bucket_user IS NOT DISTINCT FROM {quota_bucket_user}) "
    "AND (quota_bucket_client_id IS NOT DISTINCT FROM {quota_bucket_client_id}) "
    "GROUP BY principal, client_id ORDER BY usage DESC, principal, client_id"
)
SET = Question(
    'SELECT cluster_id, "user", is_default_user, client_id, is_default_client_id, ip, '
    "is_default_ip, config_key, quota, set_by, valid_from FROM current_client_quotas "
    "WHERE {of_cluster} AND ({is_user} OR {is_client_id} OR {is_ip})",
    '"user" NULLS LAST, client_id NULLS LAST, ip NULLS LAST, config_key',
)
"""Client quotas that are set."""
HEADROOM = Question(
    "SELECT *, 100 * peak_share AS peak_percent, "
    "count(CASE WHEN state = 'throttled' THEN 1 END) OVER (PARTITION BY cluster_id) "
    "AS all_throttled, count(CASE WHEN state IN ('over', 'near') THEN 1 END) "
    "OVER (PARTITION BY cluster_id) AS all_near FROM quota_headroom WHERE {of_cluster}",
    "peak_share DESC, broker_id, quota_type, quota_bucket_user, quota_bucket_client_id",
)
"""Quotas in use by how full they were in the last hour."""
RAISES = Question(
    "SELECT * FROM quota_advice WHERE {of_cluster} AND advice = 'raise'",
    "throttled_windows DESC, user, quota_type",
)
"""Quotas that a plan may raise."""
_THROTTLES = """
SELECT
    cluster_id,
    principal,
    client_id,
    throttled_by,
    sum(throttled_requests) AS throttled_requests,
    sum(throttle_time_ms) AS throttle_time_ms,
    sum(throttle_time_ms) / 1e3 AS throttled_s,
    max(last_window) AS last_window,
    sum(share_requests) AS share_requests
FROM throttled_clients
WHERE {of_cluster} AND {within:hour:last_window}
GROUP BY cluster_id, principal, client_id, throttled_by
"""
THROTTLES = Question(
    "SELECT *, sum(throttle_time_ms) OVER (PARTITION BY cluster_id) AS all_throttle_time_ms "
    f"FROM ({_THROTTLES}) AS every_row",
    "throttle_time_ms DESC, principal, client_id, throttled_by",
)
"""Clients that quotas throttled."""


def throttled_for(rows: Sequence[Row]) -> str:
    """How long clients were throttled, and whose."""
    total = texts.duration(rows[0]["all_throttle_time_ms"])
    return f"Quotas throttled {texts.names(row['principal'] for row in rows)} for {total} in all."


def bucket(row: Row) -> str:
    """Who shares a quota, in words."""
    user, client_id = row["quota_bucket_user"], row["quota_bucket_client_id"]
    owner = "all users" if user is None else texts.listed(user)
    return owner if client_id is None else f"{owner} as {texts.listed(client_id)}"


def _near(rows: Sequence[Row]) -> str:
    owners = texts.names(f"{bucket(row)} ({row['quota_type']})" for row in rows)
    return f"{owners} came near a quota, which did not throttle yet."


_READ_QUOTAS = "`quotaflow snapshot` reads the quotas"
_TODAYS_QUOTA = ": `quotaflow show current_client_quotas` has today's"
THROTTLED = RowProblem(
    code="client_throttled",
    severity=NOW,
    subjects="clients throttled",
    subject=("principal", "client_id"),
    table="throttled_clients",
    question=THROTTLES.where(f"throttle_time_ms >= {LEAST_MS} AND {undiagnosed('quota')}"),
    summary=throttled_for,
)
NEAR = RowProblem(
    code="quota_near",
    severity=SOON,
    subjects="quotas near their limit",
    subject=("broker_id", "quota_type", "quota_bucket_user", "quota_bucket_client_id"),
    table="quota_headroom",
    question=HEADROOM.where("state IN ('over', 'near')"),
    summary=_near,
    action=lambda _: "`quotaflow show quota_headroom` says how near.",
)
PROBLEMS = (THROTTLED, NEAR)
_SNAPSHOT = "SELECT 1 AS n FROM settings WHERE {of_cluster} LIMIT 1"


def findings(scope: Scope) -> Iterator[Finding]:
    """What throttled it, each limit that binds it, what is set for it, or that nothing is."""
    rows = scope.rows(_LIMITS)
    for row in rows:
        yield _limit(scope, row)
    if not any(row["all_throttled_requests"] for row in rows):
        yield _nothing(scope, rows)
    for row in scope.facts(SET.first_rows):
        yield _set(row)


def _nothing(scope: Scope, rows: Sequence[Row]) -> Finding:
    assert scope.about is not None
    name = texts.listed(scope.about.subject.name)
    text = f"No quota throttled {name} in this time."
    if all(row["quota"] is None for row in rows):
        is_taken = scope.reader.is_made("settings") and scope.rows(_SNAPSHOT)
        text = (
            f"No client quota limits {name}."
            if is_taken
            else f"{text} Run `quotaflow snapshot`, which reads client quotas and did not run yet."
        )
    return Finding(text=text, state=NOTHING, evidence_table="quota_usage")


def _limit(scope: Scope, row: Row) -> Finding:
    set_for = None if row["quota"] is None else entity_text(quota_step.entity(row))
    sentences = [_throttled(row)] if row["all_throttled_requests"] else []
    sentences += [_shares(row)] if row["all_share_requests"] else []
    sentences += _bound(scope, row) if set_for else [_unbound(row)]
    return Finding(
        text=" ".join(sentences),
        problem=_problem(row),
        next_step=_next_step(scope, row),
        evidence_table="quota_usage",
        evidence={name: row[column] for name, column in _EVIDENCE.items()} | {"set_for": set_for},
    )


def _problem(row: Row) -> Problem | None:
    if row["all_throttled_requests"]:
        return THROTTLED if row["all_throttle_time_ms"] >= LEAST_MS else None
    return NEAR if _is_near(row) else None


def entity_text(entity: QuotaEntity) -> str:
    """A quota entity in words."""
    parts = [
        f"user {entity.user}" if entity.user is not None else "",
        "the default user" if entity.is_default_user else "",
        f"client id {entity.client_id}" if entity.client_id is not None else "",
        "the default client id" if entity.is_default_client_id else "",
    ]
    return " with ".join(part for part in parts if part)


def _throttled(row: Row) -> str:
    by, kind = row["mostly_throttled_by"], row["quota_type"]
    quota = f"{by} most likely" if by else "an unknown quota"
    requests = counted(row["all_requests"], "request")
    return (
        f"{client_text(row)}: {quota} throttled {row['all_throttled_requests']:,} of {requests}"
        f"{'' if by == kind else f' charged to {kind}'}, for "
        f"{texts.duration(row['all_throttle_time_ms'])} in all."
    )


def _shares(row: Row) -> str:
    shared = row["all_share_requests"]
    text = (
        f"{shared:,} of {counted(row['all_requests'], 'request')} {noun(shared, 'was', 'were')} "
        "SHARE_FETCH. Brokers charge their bytes and do not log them, so the use is higher than "
        "shown."
    )
    if not row["all_throttled_requests"]:
        return text
    return (
        f"{text} A throttled answer counts as a delivery, and its records reach no client "
        "(`quotaflow show share_group_health`)."
    )


def _bound(scope: Scope, row: Row) -> Iterator[str]:
    share = row["quota_bucket_usage"] / row["quota"]
    client = "" if row["all_throttled_requests"] else f"{client_text(row)}: "
    is_cause = row["mostly_throttled_by"] == row["quota_type"]
    yield (
        f"{client}{row['quota_type']} of {entity_text(quota_step.entity(row))} is "
        f"{_quantity(row, 'quota')} at each broker; {_when(row)} the clients of this quota used "
        f"{_about(row)}{_quantity(row, 'quota_bucket_usage')} at {_where(row)} "
        f"({texts.share(share)}{_IN_OWN if is_cause and share < 1 else ''})."
    )
    if row["enforcement"] == "callback":
        yield "The brokers have a client.quota.callback.class, which may allow more or less."
    if _limits_it(row) or row["all_throttled_requests"]:
        yield from _shared(scope, row)


def _unbound(row: Row) -> str:
    return (
        f"{client_text(row)}: no {row['quota_type']} is known; {_when(row)} the client used "
        f"{_about(row)}{_quantity(row, 'most_used')} at {_where(row)}."
    )


def _quantity(row: Row, column: str) -> str:
    return texts.with_unit(row[column], _UNITS[row["quota_type"]])


def _about(row: Row) -> str:
    if row["is_lower_bound"]:
        return "at least "
    return "about " if row["is_estimated"] else ""


def _limits_it(row: Row) -> bool:
    """Whether the bucket is near its quota, or this quota throttled."""
    is_its = row["quota"] is not None and row["mostly_throttled_by"] == row["quota_type"]
    return _is_near(row) or bool(is_its)


def _is_near(row: Row) -> bool:
    return row["quota"] is not None and bool(row["quota_bucket_usage"] / row["quota"] >= NEAR_SHARE)


def raise_command(scope: Scope, principal: str, quota_type: str) -> str | None:
    """What raises the quota of this kind that throttled a principal; None if none of it did.

    It follows the words: raise the quota.
    """
    if scope.is_past:
        return _TODAYS_QUOTA
    for row in scope.rows(_LIMITS):
        is_its = row["principal"] == principal
        is_cause = row["mostly_throttled_by"] == quota_type == row["quota_type"]
        if is_its and is_cause and _limits_it(row):
            return quota_step.command(scope, row)
    return None


def _next_step(scope: Scope, row: Row) -> str | None:
    if _limits_it(row):
        return (
            "spread its requests over time or over more brokers (each has its own quota), or raise "
            f"the quota{_TODAYS_QUOTA if scope.is_past else quota_step.command(scope, row)}"
        )
    if not row["all_throttled_requests"]:
        return None
    by = row["mostly_throttled_by"]
    return f"see the rows of {by} in `quotaflow show quota_usage`" if by else _READ_QUOTAS


def _where(row: Row) -> str:
    return "the controller" if row["broker_id"] is None else f"broker {row['broker_id']}"


def _when(row: Row) -> str:
    """The window, or the minute or hour with the window."""
    if not row["rolled_up_s"]:
        return f"at {row['event_time']:%H:%M:%S} UTC"
    unit = "minute" if row["rolled_up_s"] == _MINUTE_S else "hour"
    return f"in the {unit} from {row['event_time']:%H:%M} UTC"


def _shared(scope: Scope, row: Row) -> Iterator[str]:
    names = ("quota_type", "event_time", "broker_id", "quota_level", "quota_bucket_user")
    literals = {name: literal(row[name]) for name in (*names, "quota_bucket_client_id")}
    sharers = scope.rows(_SHARERS, **literals)
    others = [s for s in sharers[:_MAX_SHARERS] if client_text(s) != client_text(row)]
    if others:
        shown = ", ".join(
            f"{client_text(s)} ({texts.with_unit(s['usage'], _UNITS[row['quota_type']])})"
            for s in others
        )
        more = len(sharers) - _MAX_SHARERS
        yield f"It shares this quota with {shown}{f' and {more} more' if more > 0 else ''}."


def _set(row: Row) -> Finding:
    entity = QuotaEntity(
        row["user"], row["is_default_user"], row["client_id"], row["is_default_client_id"]
    )
    owner = f"ip {row['ip']}" if row["ip"] is not None else entity_text(entity)
    time = moment(row["valid_from"])
    value = texts.with_unit(row["quota"], _UNITS.get(row["config_key"]))
    since = f"set by {row['set_by']} at {time}" if row["set_by"] else f"in snapshots since {time}"
    return Finding(
        text=f"{row['config_key']} of {owner} is {value}, {since}.",
        evidence_table="current_client_quotas",
        evidence=row,
    )
