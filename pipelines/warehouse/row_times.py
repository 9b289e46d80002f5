"""When a row of a table or view is: its time, and the period that the row covers from then on."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.schemas.tables.catalog import TABLES

_VIEW_TIMES = (
    *("event_time", "minute", "hour", "day", "changed_at", "altered_at", "opened_at"),
    *("started_at", "allocated_at", "last_seen", "valid_from", "known_at"),
)
"""Columns of views that have the time of a row; the first that a view has counts."""
_ENDS = ("closed_at", "ended_at", "valid_to", "until")
"""Columns with the end of what a row is about; the first that there is counts."""
_LENGTH_S, _PERIOD = "period_s", "period"
_UNITS = {
    "second": timedelta(seconds=1),
    "ten seconds": timedelta(seconds=10),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
}
_UNIT = re.compile(rf"(?:start of|last)(?: \w+)*? ({'|'.join(_UNITS)})s?\b")
"""How a column's meaning says that its time is the start of a period."""
_FIRST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RowPeriod:
    """The times that a row covers.

    It ends at `end`, where there is such a column. Else it begins at `time` and takes a `unit`, the
    seconds of period_s, or no time.
    """

    end: str | None
    time: str | None
    unit: str | None
    is_open: bool
    """A row whose end is null has not ended."""

    def since(self, moment: datetime) -> str:
        """SQL for the rows whose period touches the time from a moment on."""
        last = f'"{self.end or self.time}"'
        if self.unit == _PERIOD:
            length_s = f"coalesce(CAST({_LENGTH_S} AS BIGINT), 1)"
            return f"unix_micros({last}) + {length_s} * 1000000 > unix_micros({literal(moment)})"
        # The column alone at one side, so that files without such rows are not read.
        length = min(_UNITS.get(self.unit or "", timedelta(0)), moment - _FIRST)
        touches = f"{last} {'>' if self.unit else '>='} {literal(moment - length)}"
        return f"({touches} OR {last} IS NULL)" if self.is_open else touches

    @property
    def meaning(self) -> str:
        """Which rows those are, in words; empty for rows without any time."""
        if self.unit:
            start = self.end or self.time
            column = "" if start == self.unit else f" ({start})"
            return f"rows whose {self.unit}{column} ends after that time"
        is_null = ", or null" if self.is_open else ""
        last = self.end or self.time
        return f"rows whose {last} is not before that time{is_null}" if last else ""


def time_of(name: str) -> str | None:
    """The column with the time of a row; None for a view without one."""
    if name in TABLES:
        return TABLES[name].time
    columns = {column.name for column in views.load()[name].columns}
    return next((time for time in _VIEW_TIMES if time in columns), None)


def period(name: str, columns: Collection[str]) -> RowPeriod:
    """The period of the rows of a table or view, as the head of its file describes its columns.

    `columns` are those that the live table has.
    """
    described = TABLES.get(name) or views.load()[name]
    meanings = {column.name: column.comment for column in described.columns}
    time = time_of(name)
    end = next((each for each in _ENDS if each in meanings and each in columns), None)
    meaning = meanings[last] if (last := end or time) else ""
    unit = _UNIT.match(meaning)
    has_length = not end and _LENGTH_S in columns
    return RowPeriod(end, time, _PERIOD if has_length else unit and unit[1], "null" in meaning)
