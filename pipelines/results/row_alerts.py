"""Alerts on rows of tables, views and answers: events of `metric_alert_events` that have no series.

A reading has a time of its own, and a row has none: it is there when it is looked for. So these
events are appended, once answers are up to date, by who has the warehouse's lock.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from quotaflow.pipelines.config.alerts import AlertRule, AlertsSection
from quotaflow.pipelines.errors import (
    ConfigError,
    NeverMadeError,
    QueryError,
    QuotaflowError,
    nearest,
)
from quotaflow.pipelines.spark import failures
from quotaflow.pipelines.spark.spark_errors import bridge_errors
from quotaflow.pipelines.terminal import logs
from quotaflow.pipelines.warehouse import query_check, unseen_rows, views
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.readers import reader_of
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.time_ranges import Since
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.rules.alert import AlertState, CloseReason, Sight, sighted

Report = Callable[[str], None]
Key = tuple[str, str, tuple[tuple[str, str | None], ...]]
"""Cluster, rule, and the values of the rule's key."""

EVENTS = TABLES["metric_alert_events"]
MAX_ROWS = 1_000
"""The alerts that a rule may have at once: more are left out, and said."""
_LAST = """
SELECT cluster_id, rule, state, event_time, first_breach, attributes, severity, owner, watched
FROM (
    SELECT *, row_number() OVER (
        PARTITION BY cluster_id, rule, CAST(attributes AS VARCHAR)
        ORDER BY event_time DESC, first_breach DESC
    ) AS nth
    FROM metric_alert_events
    WHERE watched IS NOT NULL
) AS events
WHERE nth = 1 AND {of_cluster}
"""
_IDENTITY = ("{}.cluster_id", "{}.rule", "to_json({}.attributes)", "({}.watched IS NULL)")


@dataclass(frozen=True, slots=True)
class _Last:
    """The last event of a rule and a key, and its row."""

    sight: Sight
    row: Mapping[str, Any]


def check(alerts: AlertsSection) -> None:
    """Raise ConfigError for a rule whose table, columns or condition are wrong."""
    for rule in alerts.row_rules:
        columns = _columns(str(rule.view))
        if not columns:
            near = nearest(str(rule.view), [*TABLES, *views.load()])
            raise ConfigError(f"alerts.rules: {rule.name}: no table {rule.view}{near}")
        for name in (*rule.key, *rule.show):
            if name not in columns:
                raise ConfigError(
                    f"alerts.rules: {rule.name}: {rule.view} has no column {name}"
                    f"{nearest(name, columns)}"
                )
        try:
            query_check.check_condition(str(rule.view), str(rule.where), columns)
        except (ConfigError, QueryError) as error:
            raise ConfigError(f"alerts.rules: {rule.name}: {error}") from None


def watch(
    alerts: AlertsSection,
    warehouse: Warehouse,
    open_session: OpenSession,
    *,
    cluster_id: str | None,
    now: datetime,
    report: Report,
) -> int:
    """Write what opened and closed since the last time. Returns the number of events.

    The caller has the warehouse's lock. With a cluster's id the rules are about that cluster alone.
    A rule whose rows cannot be read keeps its alerts. That is reported, as is a write that fails.
    """
    try:
        reader = reader_of(warehouse, open_session)
        is_made = reader.is_made(EVENTS.name)
        if not (is_made or alerts.row_rules):
            return 0
        # A table of an older release lacks columns that are read next.
        warehouse.ensure(open_session, [EVENTS])
        last = _last_events(reader, cluster_id) if is_made else {}
        before = {k: each for k, each in last.items() if each.sight.state != AlertState.CLOSED}
        rows = dict(_events(alerts, reader, before, cluster_id=cluster_id, now=now, report=report))
        if rows:
            content = pa.Table.from_pylist([*rows.values()], schema=EVENTS.arrow)
            seen = [last[key].row["event_time"] if key in last else None for key in rows]
            unseen_rows.append(
                open_session, warehouse, EVENTS, content, seen=seen, identity=_IDENTITY
            )
    except QuotaflowError as error:
        return _reported(error, report)
    except bridge_errors() as error:
        problem = failures.as_error(error)
        if problem is None:
            raise
        return _reported(problem, report)
    return len(rows)


def _reported(problem: QuotaflowError, report: Report) -> int:
    report(logs.warning(f"alerts on rows may not be up to date: {problem}"))
    return 0


def _columns(name: str) -> list[str]:
    """The declared columns of a table or view; none if there is no such table."""
    if name in views.load():
        return [column.name for column in views.load()[name].columns]
    return list(TABLES[name].column_names) if name in TABLES else []


def _last_events(reader: Reader, cluster_id: str | None) -> dict[Key, _Last]:
    alerts = {}
    for row in reader.rows(_LAST.format(of_cluster=_of_cluster(cluster_id))):
        first_ms = round(row["first_breach"].timestamp() * 1_000)
        key = tuple(sorted(dict(row["attributes"] or []).items()))
        identity = (row["cluster_id"], row["rule"], key)
        alerts[identity] = _Last(Sight(AlertState(row["state"]), first_ms), row)
    return alerts


def _of_cluster(cluster_id: str | None) -> str:
    return "true" if cluster_id is None else f"cluster_id = {literal(cluster_id)}"


def _events(
    alerts: AlertsSection,
    reader: Reader,
    before: Mapping[Key, _Last],
    *,
    cluster_id: str | None,
    now: datetime,
    report: Report,
) -> Iterator[tuple[Key, dict[str, Any]]]:
    rules = {rule.name: rule for rule in alerts.row_rules}
    for rule in rules.values():
        own = {key: each for key, each in before.items() if key[1] == rule.name}
        try:
            there = _rows_there(rule, reader, cluster_id, now)
        except NeverMadeError:
            continue
        except QuotaflowError as error:
            report(logs.warning(f"alert rule {rule.name} is not evaluated: {error}"))
            continue
        is_cut = len(there) > MAX_ROWS
        if is_cut:
            report(
                logs.warning(f"alert rule {rule.name} has more than {MAX_ROWS} alerts: narrow it")
            )
        yield from _of_rule(rule, own, dict(list(there.items())[:MAX_ROWS]), now, is_cut=is_cut)
    for key, each in before.items():
        if key[1] not in rules:
            is_open = each.sight.state is not AlertState.PENDING
            reason = CloseReason.RETIRED if is_open else CloseReason.BRIEF
            retired = Sight(AlertState.CLOSED, each.sight.first_ms, reason)
            yield key, _row(key, retired, now, each.row)


def _of_rule(
    rule: AlertRule,
    own: Mapping[Key, _Last],
    there: Mapping[Key, dict[str, str | None]],
    now: datetime,
    *,
    is_cut: bool,
) -> Iterator[tuple[Key, dict[str, Any]]]:
    """The events of a rule; of rows that are cut off nothing is known, so nothing closes."""
    described = {"severity": rule.severity, "owner": rule.owner, "watched": rule.view}
    keys = [*there] if is_cut else [*there, *own]
    for key in dict.fromkeys(keys):
        last = own[key].sight if key in own else None
        now_ms = round(now.timestamp() * 1_000)
        sight = sighted(last, now_ms, 1_000 * rule.for_s, is_there=key in there)
        if sight is not None:
            yield key, _row(key, sight, now, described, there.get(key))


def _rows_there(
    rule: AlertRule, reader: Reader, cluster_id: str | None, now: datetime
) -> dict[Key, dict[str, str | None]]:
    """The rows for which a rule is true now, each with its further values: one more than allowed.

    Raises QueryError and NeverMadeError.
    """
    columns = ("cluster_id", *rule.key) if "cluster_id" in _columns(str(rule.view)) else rule.key
    keys = ", ".join(f'CAST("{name}" AS VARCHAR) AS "{name}"' for name in columns) or "1 AS one"
    shown = "".join(f', CAST(max("{name}") AS VARCHAR) AS "shown_{name}"' for name in rule.show)
    of_cluster = _of_cluster(cluster_id) if "cluster_id" in columns else "true"
    group = ", ".join(str(nth) for nth in range(1, len(columns) + 1)) or "1"
    sql = (
        f"SELECT {keys}{shown}\nFROM {rule.view}\nWHERE {of_cluster} AND (\n{rule.where}\n)\n"
        f"GROUP BY {group}\nORDER BY {group}\nLIMIT {MAX_ROWS + 1}"
    )
    day_ago = now - timedelta(days=1)
    there = {}
    for row in reader.rows(sql, Since(day_ago, day_ago)):
        key = tuple(sorted((name, row[name]) for name in rule.key))
        cluster = row.get("cluster_id") or cluster_id or ""
        there[cluster, rule.name, key] = {name: row[f"shown_{name}"] for name in rule.show}
    return there


def _row(
    key: Key,
    sight: Sight,
    now: datetime,
    described: Mapping[str, Any],
    shown: Mapping[str, str | None] | None = None,
) -> dict[str, Any]:
    cluster_id, rule, values = key
    identity = "\0".join(map(str, (cluster_id, rule, *values, sight.first_ms)))
    return {
        "cluster_id": cluster_id,
        "event_date": now.astimezone(UTC).date(),
        "event_time": now,
        "alert_id": hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:16],
        "rule": rule,
        **{name: described[name] for name in ("severity", "owner", "watched")},
        "state": sight.state,
        "reason": sight.reason,
        "first_breach": datetime.fromtimestamp(sight.first_ms / 1_000, UTC),
        "attributes": list(values),
        "shown": list((shown or {}).items()),
    }
