"""The rows of a table that a check reads: those that are new since the last check."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from quotaflow.pipelines.spark import frames
from quotaflow.schemas.table import Table

_RECORD_TIME = "record_time"
_EPOCH = datetime.fromtimestamp(0, UTC)
_LATEST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_WRITTEN = "written_at"
_FEW = 10_000


@dataclass(frozen=True, slots=True)
class LastCheck:
    """The last check of a table: when, and the range of the table's times that it read."""

    at: datetime
    from_time: datetime | None
    until: datetime | None
    is_critical: bool


@dataclass(frozen=True, slots=True)
class NewRows:
    """The rows of a table since a time: count, newest time, and time of the last write."""

    rows: int = 0
    newest: datetime | None = None
    written: datetime | None = None
    cluster_id: str | None = None

    def is_new(self, last: LastCheck | None) -> bool:
        """Whether there is something to check: new rows, or a critical failure last time."""
        if last is None:
            return True
        return last.is_critical or (self.written is not None and self.written > last.at)

    def until(self, now: datetime, last: LastCheck | None) -> datetime | None:
        """Up to which time the table is checked then: a clock that is ahead counts as now."""
        if self.newest is None:
            return last.until if last else None
        return min(self.newest, now)


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


def rows_since(rows: DataFrame, table: Table, start: datetime | None) -> DataFrame:
    """The rows of a table since a time, and those without a time: a record may have none."""
    if start is None:
        return rows
    time = F.col(clock(table))
    return rows.where((time >= F.lit(start)) | time.isNull())


def at_hand(rows: DataFrame) -> DataFrame:
    """These rows, read from their table once if they are few: every expectation reads them."""
    few = rows.limit(_FEW + 1).toArrow()
    return rows if few.num_rows > _FEW else frames.from_arrow(rows.sparkSession, few)


def extent(table: Table, rows: DataFrame) -> NewRows:
    """The extent of these rows of a table."""
    first, last = F.min("cluster_id"), F.max("cluster_id")
    (row,) = rows.agg(
        F.count(F.lit(1)).alias("rows"),
        F.unix_micros(F.max(clock(table))).alias("newest"),
        F.unix_micros(F.max(_WRITTEN)).alias("written"),
        F.when(first == last, first).alias("cluster_id"),
    ).collect()
    return NewRows(row["rows"], _utc(row["newest"]), _utc(row["written"]), row["cluster_id"])


def _utc(micros: int | None) -> datetime | None:
    # As a number: a hostile clock may be past the years Python knows.
    if micros is None:
        return None
    return _EPOCH + timedelta(microseconds=min(micros, _LATEST))
