"""Reads what to notify of: alerts, incidents, waiting plans, failed changes and checks.

Texts of clients are hostile: what does not print is escaped, and long texts are cut.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from quotaflow.pipelines.areas import diagnoses
from quotaflow.pipelines.areas.changes import ENDED, FAILED, SAVED, WITHOUT_GAIN, WRITTEN
from quotaflow.pipelines.areas.finding import client_text
from quotaflow.pipelines.areas.pipeline import CRITICAL
from quotaflow.pipelines.areas.producer_ids import ACCUSED
from quotaflow.pipelines.areas.question import NO_NAME, Question, filled
from quotaflow.pipelines.areas.telemetry import EVENTS
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.config.cluster import Team, is_like
from quotaflow.pipelines.errors import NeverMadeError
from quotaflow.pipelines.reasons import accused_burst
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.terminal.values import visible
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.schemas.tables.declared import CONFIG_CHANGES, PLANS
from quotaflow.udfs.counted import counted

ALERT_OPENED, ALERT_CLOSED = "alert_opened", "alert_closed"
INCIDENT_OPEN, INCIDENT_ENDED = "incident_open", "incident_ended"
PLAN_WAITING, CHANGE_FAILED, CHECK_FAILED = "plan_waiting", "change_failed", "check_failed"
QUOTA_WITHOUT_GAIN = "quota_without_gain"
PRODUCER_IDS = ACCUSED.code

Row = Mapping[str, Any]
_MAX_ROWS = 10_000
_MAX_CHARS, _MAX_TEXT = 200, 1_000
_CRITICAL, _WARNING, _INFO = "critical", "warning", "info"


@dataclass(frozen=True, slots=True)
class Notification:
    """One event: its kind, time, text and columns.

    `key` is the same each time the event is read, so a receiver can recognize duplicates.
    `subject` is the same for what began and for its end, as are `labels`. `group` is the kind by
    which conf filters. `lasts`: it has an end, which is an event too.
    """

    key: str
    kind: str
    cluster_id: str
    event_time: datetime
    text: str
    details: Mapping[str, str | int | float | None]
    subject: str = ""
    group: str = ""
    severity: str = _WARNING
    owner: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    lasts: bool = False
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """The question for events, their key, further columns, kind and text.

    `time` is the column with the time of the event, `labels` are columns that say what it is about:
    an end has the same. `group` is the kind by which conf filters.
    """

    question: Question
    key: tuple[str, ...]
    columns: tuple[str, ...]
    kind: Callable[[Row], str]
    text: Callable[[Row], str]
    group: str
    labels: tuple[str, ...]
    severity: str = _WARNING
    time: str = "event_time"
    subject: tuple[str, ...] = ()


_OPEN_NOW = diagnoses.open_without_end(_MAX_ROWS)


def open_tables(conf: Conf, since: datetime, until: datetime) -> Reader:
    """The tables for the questions below, asked by as few statements as can be."""
    tables = open_reader(conf)
    of_plans = [_between(question.first_rows, since, until) for question in (WRITTEN, SAVED)]
    events = (_events(source, since, until) for source in SOURCES)
    tables.gather_for([*events, *of_plans, _OPEN_NOW])
    return tables


def read_notifications(
    tables: Reader, conf: Conf, since: datetime, until: datetime
) -> list[Notification]:
    """All events in the time range, oldest first; at most the newest 10,000 of each table."""
    notices = [
        replace(notice, owner=notice.owner or _team(conf.teams, row))
        for source in SOURCES
        for row, notice in _from_source(tables, source, since, until)
    ]
    notices += _plans(tables, since, until)
    return sorted(notices, key=lambda notice: (notice.event_time, notice.key))


def _from_source(
    tables: Reader, source: Source, since: datetime, until: datetime
) -> Iterator[tuple[Row, Notification]]:
    try:
        rows = tables.rows(_events(source, since, until))
    except NeverMadeError:
        return
    for row in rows:
        yield row | _labels(row, source.labels), _of_source(source, row)


def _of_source(source: Source, row: Row) -> Notification:
    key = [row[name] for name in source.key]
    timed = {**row, "event_time": row[source.time]}
    notice = _notice(timed, source.kind(row), key, source.text(row))
    return replace(
        notice,
        subject=_subject(source, row) or notice.key,
        group=source.group,
        severity=row.get("severity") or source.severity,
        owner=row.get("owner"),
        labels=_labels(row, source.labels),
        lasts=bool(source.subject),
        is_end=notice.kind in {ALERT_CLOSED, INCIDENT_ENDED},
    )


def _subject(source: Source, row: Row) -> str:
    names = [row[name] for name in source.subject]
    return _hash(source.group, row["cluster_id"], names) if names else ""


def open_now(tables: Reader) -> dict[str, Row] | None:
    """By subject, incidents that tables show only while they are open; None if not all are read."""
    try:
        rows = tables.rows(_OPEN_NOW)
    except NeverMadeError:
        return None
    if len(rows) >= _MAX_ROWS:
        return None
    return {_subject(INCIDENTS, row): row for row in rows}


def incident_end(conf: Conf, row: Row) -> Notification:
    """That an incident ended which tables no longer show: its row, and when it was missed first."""
    ended = {**row, "event_time": row["until"], "began_or_ended": row["until"], "of_names": None}
    notice = _of_source(INCIDENTS, ended)
    return replace(notice, owner=_team(conf.teams, ended))


def _events(source: Source, since: datetime, until: datetime) -> str:
    chosen = dict.fromkeys(("cluster_id", source.time, *source.key, *source.columns))
    return _between(source.question.select(tuple(chosen)), since, until)


def _labels(row: Row, names: tuple[str, ...]) -> dict[str, str]:
    """The columns as text; of an alert on a row the values of the rule's key."""
    # A client chooses the attributes of its metrics: they are no labels, and replace none.
    of_key = dict(row.get("attributes") or []) if row.get("watched") else {}
    values = of_key | {name: row[name] for name in names}
    return {name: _cut(str(value)) for name, value in values.items() if value is not None}


def _team(teams: Sequence[Team], row: Row) -> str | None:
    """The first team that owns a name of the event."""
    entity = {row.get("entity_type"): row.get("entity_name")}
    user = entity.get("user")
    owned = {
        "principals": [row.get("principal"), f"User:{user}" if user else None],
        "clients": [row.get("client_id"), row.get("entity_client_id"), *(row.get("names") or [])],
        "topics": [row.get("topic"), entity.get("topic"), *(row.get("names") or [])],
    }
    for team in teams:
        for kind, names in owned.items():
            patterns = getattr(team, kind)
            if any(is_like(name, each) for name in names if name for each in patterns):
                return team.team
    return None


def _plans(tables: Reader, since: datetime, until: datetime) -> Iterator[Notification]:
    """Saved plans of which nothing was written since they were saved.

    A plan that was saved again counts once, at the last time.
    """
    if not tables.is_made(PLANS.name):
        return
    written_at: dict[str, datetime] = {}
    if tables.is_made(CONFIG_CHANGES.name):
        rows = tables.rows(_between(WRITTEN.first_rows, since, until))
        written_at = {row["plan_id"]: row["written_at"] for row in rows}
    for row in tables.rows(_between(SAVED.first_rows, since, until)):
        frozen_at = row["event_time"]
        if written_at.get(row["plan_id"], since) < frozen_at:
            written_at[row["plan_id"]] = frozen_at
            by = f", frozen by {_cut(row['planned_by'])}" if row["planned_by"] else ""
            text = (
                f"plan {row['plan_id']} waits with {counted(row['changes'], 'change')}{by}; "
                f"quotaflow apply {row['plan_id']} shows it"
            )
            key = [row["plan_id"], frozen_at.astimezone(UTC).isoformat()]
            notice = _notice(row, PLAN_WAITING, key, text)
            yield replace(
                notice,
                subject=notice.key,
                group=PLAN_WAITING,
                severity=_INFO,
                labels={"plan_id": row["plan_id"]},
            )


def _between(sql: str, since: datetime, until: datetime) -> str:
    """The query about events of a time range, the newest `_MAX_ROWS`."""
    start, end = literal(since), literal(until)
    parts = NO_NAME | {"of_cluster": "true", "limit": str(_MAX_ROWS)}
    return filled(sql, parts, lambda _, __, last: f"({last} > {start} AND {last} <= {end})")


def _notice(row: Row, kind: str, key: list[Any], text: str) -> Notification:
    details = {
        name: _cut(value) if isinstance(value, str) else value
        for name, value in row.items()
        if isinstance(value, str | int | float) or value is None
    }
    return Notification(
        key=_hash(kind, row["cluster_id"], key),
        kind=kind,
        cluster_id=row["cluster_id"] or "",
        event_time=row["event_time"],
        text=text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}...",
        details=details,
    )


def _hash(kind: str, cluster_id: str | None, key: list[Any]) -> str:
    identity = "\0".join([kind, cluster_id or "", *map(str, key)])
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _alert(row: Row) -> str:
    if row["watched"]:
        return _row_alert(row)
    client = client_text(dict(row))
    if row["state"] == "opened":
        value = f"{_measured(row, 'value')} (threshold {_measured(row, 'bound')})"
        return f"alert {row['rule']} opened: {_cut(row['metric'])} of {client} is {value}"
    worst = f"worst {_measured(row, 'peak_value')}"
    return f"alert {row['rule']} closed{_because(row)}: {_cut(row['metric'])} of {client}, {worst}"


_CLOSED = {"stale": "no value came any more", "retired": "conf has no such rule any more"}


def _because(row: Row) -> str:
    """Why an alert was closed, in brackets; empty if it is not known."""
    cleared = "its row is gone" if row["watched"] else "its value is normal again"
    reason = row["reason"]
    why = {"cleared": cleared, **_CLOSED}.get(reason)
    return "" if reason is None else f" ({why or _cut(reason)})"


def _row_alert(row: Row) -> str:
    """An alert on a row: its key, and while it is there the further values that the rule names."""
    key, shown = (
        ", ".join(f"{name} {_cut(value)}" for name, value in row[column] or [])
        for column in ("attributes", "shown")
    )
    state = "opened" if row["state"] == "opened" else f"closed{_because(row)}"
    subject = f"{row['watched']}{f' of {key}' if key else ''}"
    return f"alert {row['rule']} {state}: {subject}{f': {shown}' if shown else ''}"


def _change(row: Row) -> str:
    ended = ENDED.get(row["step"], row["step"])
    return f"{row['purpose']}: {_config(row)} was {ended}: {_cut(row['detail'])}"


def _without_gain(row: Row) -> str:
    return f"quota restored: {_config(row)}: {_cut(row['reason'])}"


def _config(row: Row) -> str:
    client_id = (
        f" with client id {_cut(row['entity_client_id'])}" if row["entity_client_id"] else ""
    )
    entity = f"{row['entity_type']} {_cut(row['entity_name'] or 'all')}{client_id}"
    value = "removed" if row["config_value"] is None else _cut(row["config_value"])
    return f"{entity}: {row['config_key']} = {value}"


def _check(row: Row) -> str:
    column = f" of {row['column_name']}" if row["column_name"] else ""
    rows = "some" if row["failed_rows"] is None else f"{row['failed_rows']:,}"
    failed = f"{rows} of {counted(row['checked_rows'], 'row')}"
    return f"critical check `{row['expectation']}`{column} of `{row['suite']}` failed: {failed}"


def _measured(row: Row, name: str) -> str:
    value = row[name]
    return texts.NOT_KNOWN if value is None else texts.with_unit(value, row["unit"])


def _cut(text: str | None) -> str:
    shown = visible((text or texts.NOT_KNOWN)[: _MAX_CHARS + 1])
    return shown if len(shown) <= _MAX_CHARS else f"{shown[:_MAX_CHARS]}..."


_CONFIG_CHANGE = (
    *("plan_id", "purpose", "entity_type", "entity_name", "entity_client_id"),
    *("config_key", "config_value"),
)
_ENTITY = ("entity_type", "entity_name", "entity_client_id", "config_key")
INCIDENTS = Source(
    question=diagnoses.EVENTS,
    key=("state", "symptom", "cause", "origin", "began_or_ended", "of_names"),
    columns=("since", "until", "subjects", "names", "confidence"),
    kind=lambda row: INCIDENT_OPEN if row["state"] == "open" else INCIDENT_ENDED,
    text=diagnoses.incident,
    group="incident",
    labels=("symptom", "cause", "origin"),
    subject=("symptom", "cause", "origin"),
)
SOURCES = (
    Source(
        question=EVENTS,
        key=("alert_id", "state"),
        columns=(
            *("rule", "severity", "owner", "watched", "reason", "metric", "value", "peak_value"),
            *("bound", "unit", "client_instance_id", "client_id", "principal", "broker_id"),
            *("attributes", "shown"),
        ),
        kind=lambda row: ALERT_OPENED if row["state"] == "opened" else ALERT_CLOSED,
        text=_alert,
        group="alert",
        labels=("rule", "metric", "principal", "client_id", "client_instance_id"),
        subject=("alert_id",),
    ),
    Source(
        question=FAILED,
        key=("run_id", "change_id", "step"),
        columns=(*_CONFIG_CHANGE, "detail"),
        kind=lambda _: CHANGE_FAILED,
        text=_change,
        group=CHANGE_FAILED,
        labels=_ENTITY,
        severity=_CRITICAL,
    ),
    Source(
        question=WITHOUT_GAIN,
        key=("run_id", "change_id", "step"),
        columns=(*_CONFIG_CHANGE, "reason", "observed"),
        kind=lambda _: QUOTA_WITHOUT_GAIN,
        text=_without_gain,
        group=QUOTA_WITHOUT_GAIN,
        labels=_ENTITY,
    ),
    Source(
        question=CRITICAL,
        key=("run_id", "suite", "expectation", "column_name", "kind"),
        columns=("checked_rows", "failed_rows"),
        kind=lambda _: CHECK_FAILED,
        text=_check,
        group=CHECK_FAILED,
        labels=("suite", "expectation"),
        severity=_CRITICAL,
    ),
    INCIDENTS,
    # A burst that goes on is the same event: only its end moves.
    Source(
        question=ACCUSED.question,
        key=("principal", "started_at"),
        columns=("cause", "source", "source_address", "source_ids", "ids", "hosts"),
        kind=lambda _: PRODUCER_IDS,
        text=accused_burst,
        group=PRODUCER_IDS,
        labels=("principal", "cause"),
        time="ended_at",
    ),
)
"""All events but plans, which are events because nothing was done."""
