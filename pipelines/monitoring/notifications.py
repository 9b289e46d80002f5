"""Reads what to notify of: alerts, incidents, waiting plans, failed changes and checks.

Texts of clients are hostile: what does not print is escaped, and long texts are cut.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from quotaflow.pipelines.areas import diagnoses
from quotaflow.pipelines.areas.changes import FAILED, SAVED, WITHOUT_GAIN, WRITTEN
from quotaflow.pipelines.areas.pipeline import CRITICAL
from quotaflow.pipelines.areas.producer_ids import ACCUSED
from quotaflow.pipelines.areas.question import NO_NAME, Question, filled
from quotaflow.pipelines.areas.telemetry import EVENTS
from quotaflow.pipelines.config import Conf
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
_MAX_CHARS = 200


@dataclass(frozen=True, slots=True)
class Notification:
    """One event: its kind, time, text and columns.

    `key` is the same each time the event is read, so a receiver can recognize duplicates.
    """

    key: str
    kind: str
    cluster_id: str
    event_time: datetime
    text: str
    details: Mapping[str, str | int | float | None]


@dataclass(frozen=True, slots=True)
class Source:
    """The question for events, their key, further columns, kind and text.

    `time` is the column with the time of the event.
    """

    question: Question
    key: tuple[str, ...]
    columns: tuple[str, ...]
    kind: Callable[[Row], str]
    text: Callable[[Row], str]
    time: str = "event_time"


def read_notifications(conf: Conf, since: datetime, until: datetime) -> list[Notification]:
    """All events in the time range, oldest first; at most the newest 10,000 of each table."""
    tables = open_reader(conf)
    notices = [
        notice for source in SOURCES for notice in _from_source(tables, source, since, until)
    ]
    notices += _plans(tables, since, until)
    return sorted(notices, key=lambda notice: (notice.event_time, notice.key))


def _from_source(
    tables: Reader, source: Source, since: datetime, until: datetime
) -> Iterator[Notification]:
    time = source.time
    chosen = tuple(dict.fromkeys(("cluster_id", time, *source.key, *source.columns)))
    sql = _between(source.question.select(chosen), since, until)
    try:
        rows = tables.rows(sql)
    except NeverMadeError:
        return
    for row in rows:
        key = [row[name] for name in source.key]
        yield _notice(row | {"event_time": row[time]}, source.kind(row), key, source.text(row))


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
            text = (
                f"plan {row['plan_id']} waits: {counted(row['changes'], 'change')}, frozen by "
                f"{_cut(row['planned_by'])}; quotaflow apply {row['plan_id']} shows it"
            )
            key = [row["plan_id"], frozen_at.astimezone(UTC).isoformat()]
            yield _notice(row, PLAN_WAITING, key, text)


def _between(sql: str, since: datetime, until: datetime) -> str:
    """The query about events of a time range, the newest `_MAX_ROWS`."""
    start, end = literal(since), literal(until)
    parts = NO_NAME | {"of_cluster": "true", "limit": str(_MAX_ROWS)}
    return filled(sql, parts, lambda _, __, last: f"({last} > {start} AND {last} <= {end})")


def _notice(row: Row, kind: str, key: list[Any], text: str) -> Notification:
    identity = "\0".join([kind, row["cluster_id"] or "", *map(str, key)])
    details = {
        name: _cut(value) if isinstance(value, str) else value
        for name, value in row.items()
        if isinstance(value, str | int | float) or value is None
    }
    return Notification(
        key=hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:32],
        kind=kind,
        cluster_id=row["cluster_id"] or "",
        event_time=row["event_time"],
        text=text,
        details=details,
    )


def _alert(row: Row) -> str:
    client = f"{_cut(row['client_id'])} ({_cut(row['principal'])})"
    if row["state"] == "opened":
        value = f"{_measured(row, 'value')}, bound {_measured(row, 'bound')}"
        return f"alert {row['rule']} opened: {_cut(row['metric'])} of {client} is {value}"
    worst = f"worst {_measured(row, 'peak_value')}"
    closed = f"alert {row['rule']} closed ({row['reason'] or 'ended'})"
    return f"{closed}: {_cut(row['metric'])} of {client}, {worst}"


def _change(row: Row) -> str:
    return f"{row['purpose']} {row['step']}: {_config(row)}: {_cut(row['detail'])}"


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
    rows = "some" if row["failed_rows"] is None else row["failed_rows"]
    failed = f"{rows} of {counted(row['checked_rows'], 'row')}"
    return f"critical check failed: `{row['suite']}`: `{row['expectation']}`{column}: {failed}"


def _measured(row: Row, name: str) -> str:
    value = row[name]
    return texts.NOT_KNOWN if value is None else texts.with_unit(value, row["unit"])


def _cut(text: str | None) -> str:
    shown = visible((text or "-")[: _MAX_CHARS + 1])
    return shown if len(shown) <= _MAX_CHARS else f"{shown[:_MAX_CHARS]}..."


SOURCES = (
    Source(
        question=EVENTS,
        key=("alert_id", "state"),
        columns=(
            *("rule", "reason", "metric", "value", "peak_value", "bound", "unit"),
            *("client_instance_id", "client_id", "principal", "broker_id"),
        ),
        kind=lambda row: ALERT_OPENED if row["state"] == "opened" else ALERT_CLOSED,
        text=_alert,
    ),
    Source(
        question=FAILED,
        key=("run_id", "change_id", "step"),
        columns=(
            *("plan_id", "purpose", "entity_type", "entity_name", "entity_client_id"),
            *("config_key", "config_value", "detail"),
        ),
        kind=lambda _: CHANGE_FAILED,
        text=_change,
    ),
    Source(
        question=WITHOUT_GAIN,
        key=("run_id", "change_id", "step"),
        columns=(
            *("plan_id", "purpose", "entity_type", "entity_name", "entity_client_id"),
            *("config_key", "config_value", "reason", "observed"),
        ),
        kind=lambda _: QUOTA_WITHOUT_GAIN,
        text=_without_gain,
    ),
    Source(
        question=CRITICAL,
        key=("run_id", "suite", "expectation", "column_name", "kind"),
        columns=("checked_rows", "failed_rows"),
        kind=lambda _: CHECK_FAILED,
        text=_check,
    ),
    Source(
        question=diagnoses.EVENTS,
        key=("state", "symptom", "cause", "origin", "began_or_ended", "of_names"),
        columns=("since", "until", "subjects", "names", "confidence"),
        kind=lambda row: INCIDENT_OPEN if row["state"] == "open" else INCIDENT_ENDED,
        text=diagnoses.incident,
    ),
    # A burst that goes on is the same event: only its end moves.
    Source(
        question=ACCUSED.question,
        key=("principal", "started_at"),
        columns=("cause", "source", "source_address", "source_ids", "ids", "hosts"),
        kind=lambda _: PRODUCER_IDS,
        text=accused_burst,
        time="ended_at",
    ),
)
"""All events but plans, which are events because nothing was done."""
