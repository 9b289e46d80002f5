"""The section on changes that quotaflow wrote and restored, with their outcomes."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from quotaflow.pipelines.areas.changes import ENDED, ENDS, LEASE_OVER, UNENDED
from quotaflow.pipelines.areas.finding import Finding
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.ledger.ledger import Ledger, Record
from quotaflow.pipelines.report.plan import config_value, entity, value
from quotaflow.pipelines.report.section import (
    TIME,
    GridColumn,
    ReportSection,
    grid,
    moment,
    section_of,
    text,
)
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted

TITLE = "Changes that were made"


def _until(row: Row) -> str:
    return "" if row["expires_at"] is None else texts.moment(row["expires_at"])


def _change(row: Row) -> str:
    return f"{config_value(row, 'prior_value')} → {config_value(row, 'config_value')}"


_MADE = (
    moment("at (UTC)", "event_time"),
    GridColumn("whose", entity),
    text("config", "config_key"),
    GridColumn("change", _change),
    GridColumn("ended", lambda row: f"{row['purpose']}: {ENDED.get(row['step'], row['step'])}"),
    GridColumn("lease ends (UTC)", _until, TIME),
    text("why", "reason", 160),
)
_OWNED_COLUMNS = (
    GridColumn("whose", entity),
    text("config", "config_key"),
    value("is", "value"),
    value("was", "prior_value"),
    moment("since (UTC)", "since"),
    GridColumn("until (UTC)", _until, TIME),
)
_OPEN_COLUMNS = (
    moment("at (UTC)", "event_time"),
    GridColumn("whose", entity),
    text("config", "config_key"),
)


@section_of(TITLE)
def section(scope: Scope) -> ReportSection:
    """Outcomes of changes, newest first; owned configs; and open changes."""
    ends, ledger = scope.ask(ENDS), _ledger(scope)
    owned, open_ones = _owned(ledger), [_description(record) for record in ledger.open_records]
    if not ends and not owned and not open_ones:
        sentence = "Nothing was written to the cluster in this time, and quotaflow owns no config."
        return ReportSection(
            time_range=texts.time_range(scope.since, scope.now), sentences=(sentence,)
        )
    return ReportSection(
        time_range=texts.time_range(scope.since, scope.now),
        sentences=(_ended(ends), _holding(owned, scope.now), _unended(open_ones)),
        advice="`quotaflow restore` shows what would be restored, `--yes` does it; what expires "
        "is restored by the next `quotaflow restore --yes`."
        if owned or open_ones
        else texts.NO_STEP,
        grids=(
            grid("What quotaflow owns now", owned, _OWNED_COLUMNS, "None."),
            grid("Changes by their end, the newest first", ends, _MADE, "None ended."),
            grid("Changes without an end", open_ones, _OPEN_COLUMNS, "Every change has its end."),
        ),
        left_out=(
            "`quotaflow show config_changes` also has when each change began, and who ran it.",
        ),
        alarms=tuple(_alarms(owned, open_ones, scope.now)),
    )


def _ledger(scope: Scope) -> Ledger:
    rows = scope.rows(journal.SELECT)
    return Ledger.from_records(
        journal.to_record(row) for row in rows if row["cluster_id"] == scope.cluster_id
    )


def _description(record: Record) -> Row:
    """A record as a row: entity, config key and time."""
    target = record.entity
    entity_columns = {"entity_type": target.entity_type, "entity_name": target.entity_name}
    config_columns = {"entity_client_id": target.client_id, "config_key": record.config_key}
    return entity_columns | config_columns | {"event_time": record.event_time}


def _owned(ledger: Ledger) -> list[Row]:
    """Owned configs, the first to expire first."""
    rows = [
        _description(config.record)
        | {"value": config.value, "prior_value": config.prior_value, "since": config.since}
        | {"expires_at": config.expires_at}
        for config in ledger.owned.values()
    ]
    return sorted(rows, key=lambda row: (row["expires_at"] is None, row["expires_at"]))


def _over(owned: Sequence[Row], now: datetime) -> list[Row]:
    return [row for row in owned if row["expires_at"] and row["expires_at"] < now]


def _ended(ends: Sequence[Row]) -> str:
    if not ends:
        return "No change ended in this time."
    how = texts.names(ENDED.get(row["step"], row["step"]) for row in ends)
    return f"{counted(ends[0]['of_all'], 'change')} ended: {how}."


def _holding(owned: Sequence[Row], now: datetime) -> str:
    if not owned:
        return "quotaflow owns no config now."
    over = _over(owned, now)
    late = f"; the lease of {len(over):,} is over" if over else ""
    return f"quotaflow owns {counted(len(owned), 'config')} now{late}."


def _unended(open_ones: Sequence[Row]) -> str:
    if not open_ones:
        return ""
    number = counted(len(open_ones), "change has", "changes have")
    return f"{number} no end, because a run was cut off."


def _alarms(owned: Sequence[Row], open_ones: Sequence[Row], now: datetime) -> Iterator[Finding]:
    if open_ones:
        sentence = (
            f"{_unended(open_ones)} The next `quotaflow apply` or `restore` looks at the cluster."
        )
        yield Finding(text=sentence, problem=UNENDED)
    over = _over(owned, now)
    if over:
        owners = texts.names(entity(row) for row in over)
        yield Finding(
            text=f"Leases are over, and not restored: {owners} (`quotaflow restore --yes`).",
            problem=LEASE_OVER,
        )
