"""Telemetry of clients (KIP-714): alerts on their metrics, and pushes that do not come."""

from collections.abc import Iterator
from shlex import quote

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.finding import (
    FACT,
    PROBLEM,
    Finding,
    Row,
    amount,
    client_text,
    last_day,
    moment,
)
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.reasons.wording import name
from quotaflow.udfs.counted import counted

NAME = "telemetry"
TABLES = (
    "metric_alerts",
    "client_coverage",
    "telemetry_rejections",
    "clients_without_telemetry",
)

# An alert's times are of the client's clock.
_ALERTS = (
    "SELECT rule, is_open, first_breach, opened_at, closed_at, duration_ms, metric, bound, value, "
    "peak_value, unit, client_instance_id, principal, client_id, broker_id FROM metric_alerts "
    "WHERE {of_cluster} AND {is_client} AND opened_at IS NOT NULL AND opened_at < {until} "
    "AND (closed_at IS NULL OR closed_at >= {since}) "
    "ORDER BY is_open DESC, opened_at DESC, metric"
    " LIMIT {limit}"
)
_ENDED = (
    "SELECT principal, client_id, state, CAST(count(*) AS BIGINT) AS instances, "
    "CAST(sum(missing_pushes) AS BIGINT) AS missing_pushes, max(last_seen) AS last_seen, "
    "min(client_instance_id) AS client_instance_id FROM client_coverage "
    "WHERE {of_cluster} AND {is_client} AND last_seen >= {day} AND first_seen < {until} "
    "AND state IN ('cut_off', 'vanished', 'never_pushed') "
    "GROUP BY principal, client_id, state ORDER BY state, principal, client_id"
    " LIMIT {limit}"
)
_REJECTED = (
    "SELECT principal, client_id, error_code, error_name, CAST(sum(pushes) AS BIGINT) AS pushes, "
    "max(last_seen) AS last_seen FROM telemetry_rejections "
    "WHERE {of_cluster} AND {is_client} AND last_seen >= {day} AND first_seen < {until} "
    "GROUP BY principal, client_id, error_code, error_name ORDER BY pushes DESC, error_code"
    " LIMIT {limit}"
)
_SILENT = (
    "SELECT * FROM clients_without_telemetry WHERE {of_cluster} AND {is_client} "
    "ORDER BY requests DESC, principal, client_id"
    " LIMIT {limit}"
)
_STATES = {
    "cut_off": "stopped for good, because a broker refused its push as invalid",
    "vanished": "ended without a last push",
    "never_pushed": "requested a subscription and never pushed",
}


def findings(scope: Scope) -> Iterator[Finding]:
    """Alerts, instances that stopped, refused pushes, and clients that push nothing."""
    for row in scope.rows(_ALERTS):
        yield _alert(row)
    for row in scope.rows(_ENDED):
        yield _ended(row)
    for row in scope.rows(_REJECTED):
        yield Finding(
            text=(
                f"{client_text(row)}: {counted(row['pushes'], 'push was', 'pushes were')} refused "
                f"with {row['error_name'] or row['error_code']}."
            ),
            state=PROBLEM,
            next_step="see telemetry_rejections, and docs/telemetry.md for what each error means",
            evidence_table="telemetry_rejections",
            evidence=row,
        )
    if not scope.is_recent:
        yield last_day("clients_without_telemetry")
    for row in scope.rows(_SILENT) if scope.is_recent else ():
        yield Finding(
            text=f"{client_text(row)} pushes no metrics ({row['reason']}).",
            next_step=reasons.telemetry_step(row),
            evidence_table="clients_without_telemetry",
            evidence=row,
        )


def _alert(row: Row) -> Finding:
    unit = f" {row['unit']}" if row["unit"] else ""
    ended = "is open" if row["is_open"] else f"ended after {amount(row['duration_ms'])} ms"
    prefix = row["metric"].rpartition(".")[0]
    return Finding(
        text=(
            f"{client_text(row)}: alert {row['rule']} opened at {moment(row['opened_at'])} "
            f"and {ended}: {name(row, 'metric')} was {amount(row['peak_value'])}{unit}, and "
            f"its bound is {amount(row['bound'])}."
        ),
        state=PROBLEM,
        next_step=(
            f"quotaflow troubleshoot {quote(str(row['client_instance_id']))} --metrics "
            f"{quote(f'{prefix}.')} --yes shows more of it"
            if row["is_open"]
            else "see metric_rates around that time"
        ),
        evidence_table="metric_alerts",
        evidence=row,
    )


def _ended(row: Row) -> Finding:
    is_cut_off = row["state"] == "cut_off"
    return Finding(
        text=(
            f"{client_text(row)}: {counted(row['instances'], 'client instance')} "
            f"{_STATES[row['state']]} ({row['state']}, "
            f"{counted(row['missing_pushes'] or 0, 'push is', 'pushes are')} missing)."
        ),
        state=PROBLEM if is_cut_off else FACT,
        next_step="restart the client: it pushes nothing until then" if is_cut_off else None,
        evidence_table="client_coverage",
        evidence=row,
    )
