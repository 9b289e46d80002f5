"""Which rows of a table a check looks at: what is new since it was last checked."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from quotaflow.schemas.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

_RECORD_TIME = "record_time"
_EPOCH = datetime.fromtimestamp(0, UTC)
_LATEST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
# When the newest of the files that hold a row was written: also of a result that was replaced.
_WRITTEN = "_metadata.file_modification_time"


@dataclass(frozen=True, slots=True)
class LastCheck:
    """The last check of a table: when, from where and up to which of its times it looked."""

    at: datetime
    from_time: datetime | None
    until: datetime | None
    is_critical: bool


@dataclass(frozen=True, slots=True)
class NewRows:
    """What a table holds from a time on: rows, the newest of them, and when it was written to."""

    rows: int = 0
    newest: datetime | None = None
    written: datetime | None = None
    cluster_id: str | None = None

    def is_new(self, last: LastCheck | None) -> bool:
        """Whether a check would see what the last one did not, or must look again."""
        if last is None:
            return True
        return last.is_critical or (self.written is not None and self.written > last.at)

    def until(self, now: datetime, last: LastCheck | None) -> datetime | None:
        """Up to where the table is checked then; a clock that runs ahead is not followed."""
        if self.newest is None:
            return last.until if last else None
        return min(self.newest, now)


def since(last: LastCheck | None, max_lateness: timedelta) -> datetime | None:
    """From when on a table is to be checked; None: all of it.

    What failed critically is looked at until it is mended. Else rows that came late are.
    """
    if last is None or last.until is None:
        return None
    return last.from_time if last.is_critical else last.until - max_lateness


def clock(table: Table) -> str:
    """The column that tells what is new: a client's own clock tells that of its rows least."""
    return _RECORD_TIME if _RECORD_TIME in table.column_names else table.time


def rows_since(rows: DataFrame, table: Table, start: datetime | None) -> DataFrame:
    """The rows of a table from a time on."""
    return rows if start is None else rows.where(F.col(clock(table)) >= F.lit(start))


def extents(frames: "Mapping[Table, DataFrame]") -> dict[str, NewRows]:
    """What the rows of each table hold, by its name; asked at once."""
    if not frames:
        return {}
    told = reduce(
        DataFrame.unionByName, (_extent(table, rows) for table, rows in frames.items())
    ).collect()
    return {
        row["suite"]: NewRows(
            row["rows"], _utc(row["newest"]), _utc(row["written"]), row["cluster_id"]
        )
        for row in told
    }


def _extent(table: Table, rows: DataFrame) -> DataFrame:
    first, last = F.min("cluster_id"), F.max("cluster_id")
    return rows.agg(
        F.lit(table.name).alias("suite"),
        F.count(F.lit(1)).alias("rows"),
        F.unix_micros(F.max(clock(table))).alias("newest"),
        F.unix_micros(F.max(_WRITTEN)).alias("written"),
        F.when(first == last, first).alias("cluster_id"),
    )


def _utc(micros: int | None) -> datetime | None:
    # As a number: a hostile clock may be past the years Python knows.
    if micros is None:
        return None
    return _EPOCH + timedelta(microseconds=min(micros, _LATEST))
