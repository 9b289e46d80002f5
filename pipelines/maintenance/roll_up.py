"""Rolls old windows of `quota_usage` up: windows become rows of minutes, and these rows of hours.

The table has a row per client, broker, kind of quota and window of 11 s. Without a roll-up it grows
with the number of clients times the days that rows are kept.

- Rolled-up rows are in the same table, so every query sees all time. `rolled_up_s` (60 or 3600)
  distinguishes them. A window belongs to the minute and hour in which it starts. `event_time` is
  the start of that.
- `amount` and counts are sums over windows, `usage` is amount over the time that the row covers.
  `peak_usage`, `quota_bucket_usage`, `headroom` and `is_over` are of the worst window. A histogram
  counts the windows by usage, to within 4.4 % (`udfs/rules/usage_histogram.py`). What is lost is
  the time of a window within its minute or hour, and which clients were busy at once.
- A percentile of what a user used over all its clients cannot be made from histograms of clients.
  So one row of each user, broker, kind of quota and period has the windows of the user
  (`user_windows`). A table of its own for these would need a second commit, between which a reader
  or a crash could find windows in both.
- Windows with other quotas, other causes of throttles, or none, are in rows of their own. So views
  that group by these give the same answers.

Whole hours are replaced in one commit. So readers see each window once, and a crash leaves whole
ranges. A second run finds nothing to do. Days are counted back from the newest window of a cluster,
or from now if that is earlier. So windows of its last day are always there, and a job that catches
up after an outage finds no rolled-up rows.

Old rows may still change: a rebuild reads late facts, a lookup table gets new rows. Then the result
maintainer and `rebuild` compute whole hours (`Result.whole_hours`), whose windows replace rolled-up
rows. The next upkeep rolls these up again.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files

import duckdb
import pyarrow as pa

from quotaflow.pipelines.compute.relations import FolderRelations
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.streaming.sinks import Batch, Count
from quotaflow.pipelines.warehouse import row_writer, views
from quotaflow.pipelines.warehouse.kept_translations import in_duckdb
from quotaflow.pipelines.warehouse.local_tables import FolderTables
from quotaflow.pipelines.warehouse.row_writer import Replaced
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.time_ranges import EVER, Literal, TimeRange, in_spark
from quotaflow.pipelines.warehouse.time_ranges import in_duckdb as time_in_duckdb
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse
from quotaflow.schemas.head import without_comments
from quotaflow.schemas.table import INT, LONG, STRING, TIMESTAMP
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.counted import counted
from quotaflow.udfs.engine.database import Database, opened
from quotaflow.udfs.engine.rule import Relation
from quotaflow.udfs.rules.usage_histogram import PER_LN

MINUTE_S, HOUR_S = 60, 3_600
ROWS_AT_ONCE = 1_000_000
"""Rows that are rolled up in one commit, unless one hour has more: a bound of the memory."""
_REASON = "rolled_up"
_HOURS = pa.schema(
    {
        "cluster_id": STRING,
        "start": TIMESTAMP,
        "rolled_up_s": INT,
        "row_count": LONG,
        "newest": TIMESTAMP,
    }
)
_HOURS_SQL = """
SELECT
    cluster_id, date_trunc('HOUR', event_time) AS start, coalesce(rolled_up_s, 0) AS rolled_up_s,
    count(*) AS row_count, max(event_time) AS newest
FROM {source}
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3
"""
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Hour:
    """Rows of one cluster in one hour that are windows (0), minutes (60) or hours (3600)."""

    cluster_id: str
    start: datetime
    rolled_up_s: int
    row_count: int
    newest: datetime


@dataclass(frozen=True, slots=True)
class OldRange:
    """Whole hours of a cluster that have rows to roll up, to rows of `length_s`."""

    cluster_id: str
    time: TimeRange
    length_s: int
    row_count: int


@dataclass(frozen=True, slots=True)
class RollUp:
    """Rolls up `quota_usage` of one warehouse. `open_session` is called only for a catalog.

    Ranges have at most `rows_at_once` rows, unless one hour has more.
    """

    open_session: OpenSession
    conf: Conf
    warehouse: Warehouse
    report: Report
    rows_at_once: int = ROWS_AT_ONCE

    def due(self, now: datetime) -> list[OldRange]:
        """The ranges that have rows to roll up, oldest first."""
        upkeep, hours = self.conf.upkeep, list(self._hours())
        newest = dict[str, datetime]()
        for hour in hours:
            newest[hour.cluster_id] = max(hour.newest, newest.get(hour.cluster_id, hour.newest))
        bounds = {
            cluster_id: (
                _midnight(min(now, last), upkeep.hours_after_days),
                _midnight(min(now, last), upkeep.minutes_after_days),
            )
            for cluster_id, last in newest.items()
        }
        return ranges(hours, bounds, self.rows_at_once)

    def run(self, due: Sequence[OldRange]) -> None:
        """Replace the rows of each range, in one commit each, and count them."""
        first = time.time_ns() // 1_000_000
        with opened({}, self.conf.results.task_memory_mb) as database:
            for batch_id, old in enumerate(due, first):
                written = (
                    self._in_catalog(old) if self._has_catalog else self._in_folder(old, database)
                )
                batch = Batch(self.warehouse, "upkeep", "roll_up", batch_id, has_time_id=True)
                counts = [
                    Count("in", old.row_count, "quota_usage", _REASON),
                    Count("out", written, "quota_usage", _REASON),
                ]
                batch.report(self.open_session, counts, old.cluster_id, old.time.start)
                self.report(line(old, written))

    @property
    def _has_catalog(self) -> bool:
        return bool(self.warehouse.conf.catalog_schema)

    def _hours(self) -> Iterator[Hour]:
        if self._has_catalog:
            spark, target = self.open_session(), self.warehouse.target("quota_usage")
            rows = spark.sql(_HOURS_SQL.format(source=target)).toArrow().cast(_HOURS)
        else:
            query = in_duckdb(_HOURS_SQL.format(source="stored"))
            memory_mb = self.conf.results.task_memory_mb
            stored = {"stored": self._stored(EVER)}
            with self._engine_errors(), opened(stored, memory_mb) as database:
                rows = pa.Table.from_batches(database.query(query, _HOURS), _HOURS)
        # A row without its cluster is of no cluster's time.
        return (Hour(**row) for row in rows.to_pylist() if row["cluster_id"] is not None)

    def _in_folder(self, old: OldRange, database: Database) -> int:
        period_s = self.conf.quotas.rate_period_s
        with self._engine_errors():
            rows = rolled_up(self._stored(old.time), old, period_s, database)
        replaced = Replaced([old.time], _of_cluster(old))
        row_writer.replace(self.open_session, self.warehouse, TABLES["quota_usage"], rows, replaced)
        return int(rows.num_rows)

    @contextmanager
    def _engine_errors(self) -> Iterator[None]:
        """Raise DamagedError instead of an error of DuckDB, if a file of the table is the cause."""
        try:
            yield
        except (duckdb.Error, OSError):
            tables = FolderTables(self.warehouse.place)
            tables.table("quota_usage")
            if damaged := tables.damaged():
                raise damaged from None
            raise

    def _in_catalog(self, old: OldRange) -> int:
        where = f"{old.time.date_condition('event_date')} AND {_where(old, in_spark)}"
        stored = f"{self.warehouse.target('quota_usage')} WHERE {where}"
        rows = self.open_session().sql(sql(old, stored, self.conf.quotas.rate_period_s))
        # Delta reads the rows in the transaction that replaces them, so no write comes in between.
        writer = (
            rows.select(TABLES["quota_usage"].column_names).write.format("delta").mode("overwrite")
        )
        self.warehouse.write(writer.option("replaceWhere", where), "quota_usage")
        return self.warehouse.read(self.open_session(), "quota_usage").where(where).count()

    def _stored(self, time: TimeRange) -> Relation:
        """The table's files of a time; listed each time, because a commit replaces files."""
        place = self.warehouse.place
        files = FolderRelations(place).within("quota_usage", [time])
        return place.files(TABLES["quota_usage"], (file.path for file in files))


def rolled_up(stored: Relation, old: OldRange, rate_period_s: int, database: Database) -> pa.Table:
    """The rows that replace those of a range, from stored rows of it and of other times."""
    # The condition is put in afterwards: its times are literals of DuckDB.
    text = in_duckdb(sql(old, "stored_rows", rate_period_s))
    text = text.replace("stored_rows", f"stored WHERE {_where(old, time_in_duckdb)}")
    rows = database.over({"stored": stored}).query(text, TABLES["quota_usage"].arrow)
    return pa.Table.from_batches(rows, TABLES["quota_usage"].arrow)


def ranges(
    hours: Sequence[Hour],
    bounds: dict[str, tuple[datetime | None, datetime | None]],
    rows_at_once: int,
) -> list[OldRange]:
    """Ranges of hours that have rows to roll up, by the lengths that are due.

    `bounds` are the times of each cluster before which rows become those of hours and of minutes.
    A range is in one day, because a day is a partition.
    """
    ranges_due = list[OldRange]()
    due: dict[tuple[str, datetime], tuple[int, int]] = {}
    for hour in hours:
        length_s = _length_due(hour.start, *bounds[hour.cluster_id])
        rows, narrow = due.get((hour.cluster_id, hour.start), (0, 0))
        is_narrow = hour.rolled_up_s < length_s
        due[hour.cluster_id, hour.start] = rows + hour.row_count, narrow + is_narrow
    for (cluster_id, start), (rows, narrow) in sorted(due.items()):
        if not narrow:
            continue
        length_s = _length_due(start, *bounds[cluster_id])
        old = OldRange(cluster_id, TimeRange(start, start + timedelta(hours=1)), length_s, rows)
        if ranges_due and (joined := _joined(ranges_due[-1], old, rows_at_once)):
            ranges_due[-1] = joined
        else:
            ranges_due.append(old)
    return ranges_due


def _joined(a: OldRange, b: OldRange, rows_at_once: int) -> OldRange | None:
    rows = a.row_count + b.row_count
    is_one_day = a.time.start.date() == b.time.start.date()
    if a.cluster_id != b.cluster_id or not is_one_day or rows > rows_at_once:
        return None
    return OldRange(a.cluster_id, TimeRange(a.time.start, b.time.end), a.length_s, rows)


def _length_due(start: datetime, hours: datetime | None, minutes: datetime | None) -> int:
    if hours is not None and start < hours:
        return HOUR_S
    return MINUTE_S if minutes is not None and start < minutes else 0


def _midnight(time: datetime, days: int | None) -> datetime | None:
    """The midnight before a time, so many days earlier."""
    if days is None:
        return None
    midnight = time.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight - timedelta(days)


def sql(old: OldRange, source: str, rate_period_s: int) -> str:
    """The rows that replace those of a range, in Spark's SQL. `source` follows SELECT * FROM."""
    return _text().format(
        source=source,
        unit="HOUR" if old.length_s == HOUR_S else "MINUTE",
        length_s=old.length_s,
        rate_period_s=rate_period_s,
        per_ln=f"{PER_LN!r}e0",
        client_usage_windows=views.load()["client_usage_windows"].sql,
        user_usage_windows=views.load()["user_usage_windows"].sql,
    )


@cache
def _text() -> str:
    text = files("quotaflow.pipelines.maintenance").joinpath("roll_up.sql")
    return without_comments(text.read_text(encoding="utf-8"))


def line(old: OldRange, written: int | None = None) -> str:
    """What is done to a range, or would be done."""
    unit = "hours" if old.length_s == HOUR_S else "minutes"
    time = f"{old.time.start:%Y-%m-%d %H:%M} to {old.time.end:%Y-%m-%d %H:%M}"
    done = "would be" if written is None else "were"
    into = f"rows of {unit}" if written is None else f"{_rows(written)} of {unit}"
    return f"quota_usage: {_rows(old.row_count)} of {time} {done} rolled up to {into}"


def _rows(count: int) -> str:
    return counted(count, "row")


def _of_cluster(old: OldRange) -> str:
    return f"cluster_id = {literal(old.cluster_id)}"


def _where(old: OldRange, time_literal: Literal) -> str:
    return f"{_of_cluster(old)} AND {old.time.condition('event_time', time_literal)}"
