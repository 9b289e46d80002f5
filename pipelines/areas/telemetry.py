"""Telemetry of clients (KIP-714): alerts on their metrics, and pushes that do not come."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta
from shlex import quote

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.finding import (
    NOW,
    SOON,
    Finding,
    RowProblem,
    client_text,
    last_day,
    moment,
)
from quotaflow.pipelines.areas.question import Question, Row, of_users
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.reasons.wording import name
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.schemas.metrics import METRICS, PREFIX
from quotaflow.udfs.counted import counted

NAME = "telemetry"
TABLES = (
    "metric_alerts",
    "client_coverage",
    "telemetry_rejections",
    "clients_without_telemetry",
)

_TOO_LARGE = 118
_SEE_REJECTIONS = "see `quotaflow show telemetry_rejections`"
_THROTTLED = 89
_EARLY_PUSHES = 3
STATES = ("active", "terminated", "vanished", "never_pushed", "cut_off", "refused")
"""States of client instances (client_coverage)."""
_OF_USERS = of_users("client_coverage")
_PROGRAM = (
    "CASE WHEN count(DISTINCT client_id) > 1 THEN client_pattern ELSE max(client_id) END "
    "AS client_id, count(DISTINCT client_id) AS client_ids, count(*) AS instances"
)
"""Of instances by client_pattern."""
_ENDED = (
    f"SELECT principal, {_PROGRAM}, state, "
    "max(refused_error_code) AS refused_error_code, max(refused_bytes) AS refused_bytes, "
    "CAST(sum(missing_pushes) AS BIGINT) AS missing_pushes, max(last_seen) AS last_seen, "
    "min(client_instance_id) AS client_instance_id FROM client_coverage "
    "WHERE {of_cluster} AND {is_client} AND {in_day:first_seen:last_seen} "
    "AND state IN ('cut_off', 'refused', 'vanished', 'never_pushed') "
    "GROUP BY principal, client_pattern, state "
    "ORDER BY state, principal, client_id LIMIT {limit}"
)
# A client with an old subscription (UNKNOWN_SUBSCRIPTION_ID) asks for the new one, and goes on. One
# that pushed too early waits and goes on, which costs metrics only if it happens again and again.
_REJECTED = (
    "SELECT cluster_id, principal, client_id, client_ids, error_code, error_name, pushes, "
    "last_seen FROM (SELECT cluster_id, principal, "
    "CASE WHEN count(DISTINCT client_id) > 1 THEN client_pattern ELSE max(client_id) END "
    "AS client_id, count(DISTINCT client_id) AS client_ids, error_code, max(error_name) AS "
    "error_name, count(*) AS pushes, min(event_time) AS first_seen, max(event_time) AS last_seen "
    "FROM rejected_pushes WHERE {of_cluster} AND error_code IS DISTINCT FROM 117 "
    "GROUP BY cluster_id, principal, client_pattern, error_code) AS every_error "
    "WHERE {is_program} AND {in_day:first_seen:last_seen} "
    f"AND (error_code IS DISTINCT FROM {_THROTTLED} OR pushes >= {_EARLY_PUSHES})"
)
_WITHOUT_OF_NAME = (
    "SELECT * FROM clients_without_telemetry WHERE {of_cluster} AND {is_program} "
    "ORDER BY requests DESC, principal, client_id LIMIT {limit}"
)
SOFTWARE = f"""
SELECT
    coalesce(client_software_name, 'unknown') AS software,
    coalesce(client_software_version, '') AS version,
    {", ".join(f"count(CASE WHEN state = '{state}' THEN 1 END) AS {state}" for state in STATES)},
    count(*) AS instances,
    sum(missing_pushes) AS missing_pushes,
    sum(expected_pushes) AS expected_pushes,
    sum(rejected_pushes) AS rejected_pushes,
    min(first_seen) AS first_seen,
    max(last_seen) AS last_seen
FROM client_coverage
WHERE {{of_cluster}} AND {{within:first_seen:last_seen}} AND {_OF_USERS}
GROUP BY 1, 2
ORDER BY instances DESC, software, version
"""
"""Client instances by software."""
BY_END = Question(
    f"""
SELECT cluster_id, coalesce(client_software_name, 'unknown') AS software, state,
    count(*) AS instances, sum(missing_pushes) AS missing_pushes
FROM client_coverage
WHERE {{of_cluster}} AND {_OF_USERS} AND {{within:first_seen:last_seen}}
GROUP BY cluster_id, coalesce(client_software_name, 'unknown'), state
""",
    "instances DESC",
)
"""Client instances by software and how they ended."""
_ASSIGNED = f"{PREFIX}consumer.coordinator.assigned.partitions"
_MOST_STATISTICS = 5
_IDLE = """
SELECT DISTINCT group_id, members, partitions
FROM (
    SELECT
        group_id,
        client_id,
        cardinality(assigned_partitions) AS assigned,
        count(*) OVER (PARTITION BY cluster_id, group_id) AS members,
        count(assigned_partitions) OVER (PARTITION BY cluster_id, group_id) AS known,
        sum(cardinality(assigned_partitions)) OVER (PARTITION BY cluster_id, group_id) AS partitions
    FROM current_group_assignments
    WHERE {of_cluster}
) AS assignments
WHERE client_id = {client_id} AND assigned = 0 AND members = known AND members > partitions
ORDER BY group_id
LIMIT 1
"""
"""A group of which a client has no partition, because it has more members than partitions."""
# An alert's times are of the client's clock.
EVERY_ALERT = Question(
    "SELECT * FROM metric_alerts WHERE {of_cluster} AND {is_client}",
    "is_open DESC, opened_at DESC, client_id, rule, metric",
)
_ALERTS_OF_TIME = EVERY_ALERT.where(
    "opened_at < {until} AND (closed_at IS NULL OR closed_at >= {since})"
)
EVENTS = Question(
    "SELECT * FROM metric_alert_events WHERE {of_cluster} AND {within:event_time} "
    "AND state IN ('opened', 'closed') AND reason IS DISTINCT FROM 'brief'",
    "event_time DESC",
)
"""Alerts that opened or closed."""
SILENT = Question(
    f"""
SELECT cluster_id, principal, {_PROGRAM}, state, client_software_name,
    max(push_interval_ms) AS push_interval_ms,
    sum(expected_pushes) AS expected_pushes,
    CAST(sum(missing_pushes) AS DOUBLE) / nullif(sum(expected_pushes), 0) AS missing_share,
    max(last_seen) AS last_seen
FROM client_coverage
WHERE {{of_cluster}} AND {{is_client}} AND {{in_day:first_seen:last_seen}} AND {_OF_USERS}
    AND (state IN ('vanished', 'cut_off', 'refused', 'never_pushed') OR missing_share > 0.05)
GROUP BY cluster_id, principal, client_pattern, state, client_software_name
""",
    "state = 'cut_off' DESC, missing_share DESC NULLS LAST, client_id, principal, state, "
    "client_software_name",
)
"""Programs with instances that fell silent, were cut off, or lack pushes."""
ALERTS = Question(
    """
SELECT cluster_id, is_open, rule, client_id, principal, metric, bound, unit,
    count(*) AS alerts,
    max(peak_value) AS peak_value,
    max(duration_ms) AS duration_ms,
    min(first_breach) AS first_breach,
    sum(count(*)) OVER (PARTITION BY cluster_id) AS all_alerts,
    sum(count(CASE WHEN is_open THEN 1 END)) OVER (PARTITION BY cluster_id) AS open_alerts
FROM metric_alerts
WHERE {of_cluster} AND (is_open OR {within:first_breach:closed_at})
GROUP BY cluster_id, is_open, rule, client_id, principal, metric, bound, unit
""",
    "is_open DESC, first_breach DESC, client_id, rule",
)
"""Alerts by rule and client."""
WITHOUT = Question(
    """
SELECT cluster_id, reason, client_software_name, client_software_version, sum(clients) AS clients,
    sum(requests) AS requests,
    sum(sum(clients)) OVER (PARTITION BY cluster_id) AS all_clients,
    sum(sum(CASE WHEN reason = 'too_old' THEN clients ELSE 0 END)) OVER (PARTITION BY cluster_id)
        AS too_old,
    sum(sum(CASE WHEN reason = 'switched_off' THEN clients ELSE 0 END))
        OVER (PARTITION BY cluster_id) AS switched_off
FROM (SELECT *, greatest(client_ids, 1) AS clients FROM clients_without_telemetry) AS silent
WHERE {of_cluster} AND last_seen >= {since}
GROUP BY cluster_id, reason, client_software_name, client_software_version
""",
    "clients DESC, client_software_name, client_software_version",
)
"""Clients that never asked to push, by software."""
ALERT_OPEN = RowProblem(
    code="metric_alert_open",
    severity=NOW,
    subjects="alerts that are open",
    subject=("alert_id",),
    table="metric_alerts",
    question=EVERY_ALERT.where("is_open"),
    summary=lambda rows: (
        f"Alerts on metrics of {texts.names(row['client_id'] for row in rows)} are open."
    ),
    action=lambda _: (
        "`quotaflow troubleshoot CLIENT` collects more metrics of a client, for some minutes."
    ),
)
CUT_OFF = RowProblem(
    code="client_cut_off",
    severity=SOON,
    subjects="clients that were cut off",
    subject=("principal", "client_id"),
    table="client_coverage",
    question=SILENT.where("state = 'cut_off'"),
    summary=lambda rows: (
        f"Brokers cut off the metrics of {texts.names(row['client_id'] for row in rows)}."
    ),
    action=lambda _: "Restart these clients: they push no metrics until then.",
)
PUSH_REFUSED = RowProblem(
    code="push_refused",
    severity=SOON,
    subjects="clients whose pushes were refused",
    subject=("principal", "client_id"),
    table="telemetry_rejections",
    question=Question(_REJECTED, "pushes DESC, error_code"),
    summary=lambda rows: (
        f"Brokers refused pushes of metrics by {texts.names(row['client_id'] for row in rows)}."
    ),
    action=lambda _: "`quotaflow show telemetry_rejections` has the errors.",
)
PROBLEMS = (ALERT_OPEN, CUT_OFF, PUSH_REFUSED)
_STATES = {
    "cut_off": "stopped pushing metrics, because a broker refused its push as invalid",
    "vanished": "ended without a last push",
    "never_pushed": "requested a subscription and never pushed",
    "refused": "pushed, and brokers refused it each time",
}


def findings(scope: Scope) -> Iterator[Finding]:
    """Alerts, instances that stopped, refused pushes, and clients that push nothing."""
    for row in scope.ask(_ALERTS_OF_TIME):
        yield _alert(row, scope)
    for row in scope.rows(_ENDED):
        yield _ended(row)
    for row in scope.ask(PUSH_REFUSED.question):
        yield PUSH_REFUSED.of_row(
            row,
            f"{client_text(row)}: brokers refused {counted(row['pushes'], 'push', 'pushes')} of "
            f"metrics with {row['error_name'] or row['error_code']}{_too_early(row)}.",
            "see `quotaflow show telemetry_rejections`",
        )
    if not scope.is_recent:
        yield last_day("clients_without_telemetry")
    for row in by_library(scope.facts(_WITHOUT_OF_NAME) if scope.is_recent else ()):
        yield Finding(
            text=f"{client_text(row)} pushes no metrics.",
            next_step=reasons.telemetry_step(row),
            evidence_table="clients_without_telemetry",
            evidence=row,
        )


def _too_early(row: Row) -> str:
    """The error has the name of a quota, and no client quota has to do with it."""
    is_early = row["error_code"] == _THROTTLED
    return ", because the client pushed before its interval was over" if is_early else ""


def by_library(rows: Sequence[Row]) -> Iterator[Row]:
    """A row for each client, library and reason, with all versions."""
    names = ("cluster_id", "principal", "client_id", "client_software_name", "reason")
    versions = defaultdict[tuple[object, ...], list[Row]](list)
    for row in rows:
        versions[tuple(row[name] for name in names)].append(row)
    for first, *others in versions.values():
        every = [each["client_software_version"] for each in (first, *others)]
        yield first | {"client_software_version": texts.names(every)} if others else first


def _alert(row: Row, scope: Scope) -> Finding:
    # One that closed later was open at the time that is asked about.
    was_open = row["is_open"] or row["closed_at"] >= scope.until
    goes_on = row["is_open"] or (was_open and row["reason"] == "stale" and not scope.is_past)
    opened, is_open, end = moment(row["opened_at"]), "has been open since", ""
    if not was_open:
        opened_ms = (row["opened_at"] - row["first_breach"]) / timedelta(milliseconds=1)
        is_open = f"was open for {texts.duration(row['duration_ms'] - opened_ms)} from"
        end = ", and then no reading came" if row["reason"] == "stale" else ""
    peak, bound = (
        texts.NOT_KNOWN if row[column] is None else texts.with_unit(row[column], row["unit"])
        for column in ("peak_value", "bound")
    )
    steps = [_idle(row, scope), _more_metrics(row)]
    return Finding(
        text=(
            f"{client_text(row)}: alert {row['rule']} {is_open} {opened}{end}: "
            f"{name(row, 'metric')} reached {peak} (threshold {bound})."
        ),
        problem=ALERT_OPEN if was_open else None,
        next_step=(
            "; ".join(filter(None, steps))
            if goes_on
            else "see `quotaflow show metric_totals` around that time"
        ),
        evidence_table="metric_alerts",
        evidence=row,
    )


def _more_metrics(row: Row) -> str:
    client, prefix = quote(str(row["client_instance_id"])), quote(group_of(row["metric"]))
    return f"to see more metrics, run `quotaflow troubleshoot {client} --metrics {prefix} --yes`"


def group_of(metric: str) -> str:
    """The longest prefix of a metric that others of the catalogue have, beside its statistics."""
    parts = metric.split(".")
    for count in range(len(parts) - 1, 0, -1):
        prefix = f"{'.'.join(parts[:count])}."
        if sum(name.startswith(prefix) for name in METRICS) > _MOST_STATISTICS:
            return prefix
    return f"{metric.rpartition('.')[0]}."


def _idle(row: Row, scope: Scope) -> str | None:
    """What to do if the client has no partition because its group has too few for all members."""
    if row["metric"] != _ASSIGNED:
        return None
    for group in scope.rows_if_made(_IDLE.replace("{client_id}", literal(row["client_id"]))):
        members = counted(group["members"], "member")
        partitions = counted(int(group["partitions"]), "partition")
        return (
            f"{texts.listed(group['group_id'])} has {members} for {partitions}, so a member "
            "has none: stop it, or add partitions"
        )
    return None


def _ended(row: Row) -> Finding:
    is_cut_off, lost = row["state"] == "cut_off", row["missing_pushes"]
    missing = f"; {counted(lost, 'push is', 'pushes are')} missing" if lost else ""
    return Finding(
        text=(
            f"{client_text(row)}: {counted(row['instances'], 'client instance')} "
            f"{_STATES[row['state']]}{missing}."
        ),
        problem=CUT_OFF if is_cut_off else None,
        is_hint=True,
        next_step=_step_of_ended(row),
        evidence_table="client_coverage",
        evidence=row,
    )


def _step_of_ended(row: Row) -> str | None:
    if row["state"] == "cut_off":
        return f"{_SEE_REJECTIONS}, then restart the client: it pushes nothing until then"
    if row["state"] != "refused":
        return None
    if row["refused_error_code"] != _TOO_LARGE:
        return _SEE_REJECTIONS
    size = "its pushes" if row["refused_bytes"] is None else texts.size(row["refused_bytes"])
    return (
        f"raise telemetry.max.bytes of the brokers above {size}, or let its subscription name "
        "fewer metrics: a client does not make its pushes smaller by itself"
    )
