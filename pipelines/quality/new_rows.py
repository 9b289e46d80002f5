"""The rows of a table that a check reads: those that are new since the last check."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.time_ranges import Literal, in_duckdb
from quotaflow.schemas.table import Table

_RECORD_TIME = "record_time"
_EPOCH = datetime.fromtimestamp(0, UTC)
_LATEST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class LastCheck:
    """The last check of a table: when, and the range of the table's times that it read."""

    at: datetime
    from_time: datetime | None
    until: datetime | None
    is_critical: bool


@dataclass(frozen=True, slots=True)
class NewRows:
    """The rows of a table since a time: their number, the newest time, the cluster if it is one."""

    rows: int = 0
    newest: datetime | None = None
    cluster_id: str | None = None

    def until(self, now: datetime, last: LastCheck | None) -> datetime | None:
        """Up to which time the table is checked then: a clock that is ahead counts as now."""
        if self.newest is None:
            return last.until if last else None
        return min(self.newest, now)


def is_new(last: LastCheck, written_at: datetime | None) -> bool:
    """Whether a table is to be checked again: it was written since, or failed critically."""
    return last.is_critical or (written_at is not None and written_at > last.at)


def since(last: LastCheck | None, max_lateness: timedelta) -> datetime | None:
    """Since when a table is to be checked; None: all of it.

    After a critical failure the same rows are checked again until they pass. Else the range begins
    `max_lateness` earlier, for late rows.
    """
    if last is None or last.until is None:
        return None
    return last.from_time if last.is_critical else last.until - max_lateness


def clock(table: Table) -> str:
    """The column that shows what is new: record time if there is one, for clocks of clients lie."""
    return _RECORD_TIME if _RECORD_TIME in table.column_names else table.time


def condition(table: Table, start: datetime | None, literal: Literal = in_duckdb) -> str:
    """SQL for rows of a table since a time, and those without a time: a record may have none."""
    if start is None:
        return "TRUE"
    time = clock(table)
    return f"({time} >= {literal(start)} OR {time} IS NULL)"


def extent(tables: Reader, table: Table, start: datetime | None) -> NewRows:
    """The extent of the rows of a table since a time."""
    (row,) = tables.rows(
        f"SELECT count(*) AS n, max(epoch_us({clock(table)})) AS newest_us, "
        "min(cluster_id) AS first, max(cluster_id) AS last "
        f"FROM {table.name} WHERE {condition(table, start)}"
    )
    cluster_id = row["first"] if row["first"] == row["last"] else None
    return NewRows(row["n"], _utc(row["newest_us"]), cluster_id)


def _utc(micros: int | None) -> datetime | None:
    # As a number: a hostile clock may be past the years Python knows.
    if micros is None:
        return None
    return _EPOCH + timedelta(microseconds=min(micros, _LATEST))
