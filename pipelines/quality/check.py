"""`quotaflow check`: checks the new rows of tables against their expectations."""

import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError, nearest
from quotaflow.pipelines.quality import new_rows, quality_results, suites, wording
from quotaflow.pipelines.quality.new_rows import LastCheck, NewRows
from quotaflow.pipelines.quality.quality_results import Row
from quotaflow.pipelines.quality.suites import CRITICAL, SQL_TEXT, Check
from quotaflow.pipelines.quality.validation import Validation, Verdict, great_expectations
from quotaflow.pipelines.spark import frames, session
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.reader import Reader, each
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.time_ranges import in_spark
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import QUALITY_RESULTS
from quotaflow.udfs.counted import counted, noun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Report = Callable[[str], None]
Suites = Mapping[str, Sequence[Check]]
_FEW = 10_000


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """What to check: named tables or all; rows since a time, or new rows if it is None."""

    names: Collection[str] = ()
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of a run: its rows of quality_results, and what to do for each failed check."""

    rows: Sequence[Row]
    advice: Sequence[str] = ()

    @property
    def failed(self) -> list[Row]:
        """The rows of failed checks."""
        return [row for row in self.rows if not row["success"]]

    @property
    def is_critical(self) -> bool:
        """Whether a critical check failed: plans must not rest on its table."""
        return any(row["severity"] == CRITICAL for row in self.failed)


@dataclass(frozen=True, slots=True)
class _Target:
    """A table to check: its rows since a time, their extent, and the last check."""

    table: Table
    start: datetime | None
    last: LastCheck | None
    extent: NewRows


def check(conf: Conf, request: CheckRequest, now: datetime, report: Report) -> CheckReport:
    """Check new rows of tables, and store the results.

    Raises ConfigError for a name that is not a table and for a table of another schema version,
    MissingToolError without great-expectations.
    """
    chosen = _chosen(conf, request.names)
    great_expectations()
    warehouse = Warehouse(conf.warehouse)
    with warehouse.lock():
        open_session = session.opener(session.short_lived(conf.spark), report)
        warehouse.ensure(open_session, [QUALITY_RESULTS])
        tables = open_reader(conf, open_session)
        targets = _targets(conf, tables, open_session, chosen, request.since)
        hold = counted(len(targets), "table holds", "tables hold")
        others = len(chosen) - len(targets)
        report(f"{hold} something new, {others} {noun(others, 'does', 'do')} not")
        if not targets:
            return CheckReport([])
        spark = open_session()
        validation = Validation()
        used = [check for target in targets for check in chosen[target.table.name]]
        _register(spark, warehouse, used)
        own = {"run_id": uuid.uuid4().hex, "event_time": now}
        rows: list[Row] = []
        advice: list[str] = []
        for target in targets:
            began, name = time.monotonic(), target.table.name
            frame = _frame(spark, warehouse, tables, target)
            verdicts = validation.verdicts(name, chosen[name], frame)
            report(_line(target, verdicts, time.monotonic() - began))
            of_table = own | _of_table(target, now)
            rows += [of_table | _of_check(verdict) for verdict in verdicts]
            failed = (verdict.check for verdict in verdicts if not verdict.success)
            advice += [wording.advice(target.table, check) for check in failed]
        quality_results.keep(open_session, warehouse, rows)
        return CheckReport(rows, advice)


def _chosen(conf: Conf, names: Collection[str]) -> Suites:
    loaded = suites.load(
        {
            "max_clock_skew_s": conf.ingest.max_clock_skew_s,
            "max_lateness_s": conf.results.max_lateness_s,
        }
    )
    for name in names:
        if name not in loaded:
            raise ConfigError(f"no table {name} is checked{nearest(name, list(loaded))}")
    return {name: checks for name, checks in loaded.items() if not names or name in names}


def _targets(
    conf: Conf,
    tables: Reader,
    open_session: OpenSession,
    chosen: Suites,
    since: datetime | None,
) -> list[_Target]:
    """The tables with new rows or, with `since`, with any rows since then."""
    warehouse = Warehouse(conf.warehouse)
    max_lateness = timedelta(seconds=conf.results.max_lateness_s)
    lasts = {} if since else quality_results.last_checks(tables)

    def target(name: str) -> _Target | None:
        last = lasts.get(name)
        if last and not new_rows.is_new(last, warehouse.detail(open_session, name).written_at):
            return None
        start = since or new_rows.since(last, max_lateness)
        extent = new_rows.extent(tables, TABLES[name], start)
        is_met = last and not last.is_critical and not extent.rows
        return None if is_met else _Target(TABLES[name], start, last, extent)

    made = [name for name in chosen if tables.is_made(name)]
    return list(filter(None, each(tables, target, made)))


def _frame(
    spark: "SparkSession", warehouse: Warehouse, tables: Reader, target: _Target
) -> "DataFrame":
    """The rows to check: in memory if they are few, for every expectation reads them."""
    table = target.table
    if target.extent.rows > _FEW:
        rows = warehouse.read(spark, table.name)
        return rows.where(new_rows.condition(table, target.start, in_spark))
    columns = ", ".join(table.column_names)
    where = new_rows.condition(table, target.start)
    few = tables.read(f"SELECT {columns} FROM {table.name} WHERE {where}", table.arrow)
    return frames.from_arrow(spark, few)


def _register(spark: "SparkSession", warehouse: Warehouse, checks: Sequence[Check]) -> None:
    """Give the session the tables that SQL of checks names; a missing table is empty."""
    sql = " ".join(str(check.kwargs.get(SQL_TEXT, "")) for check in checks)
    for name in views.names_in(sql, TABLES):
        if warehouse.exists(spark, name):
            warehouse.check_readable(spark, name)
            rows = warehouse.read(spark, name)
        else:
            rows = frames.from_arrow(spark, TABLES[name].arrow.empty_table())
        rows.createOrReplaceTempView(name)


def _of_table(target: _Target, now: datetime) -> Row:
    return {
        "cluster_id": target.extent.cluster_id,
        "suite": target.table.name,
        "checked_rows": target.extent.rows,
        "from_time": target.start,
        "until_time": target.extent.until(now, target.last),
    }


def _of_check(verdict: Verdict) -> Row:
    check = verdict.check
    return {
        "expectation": check.name,
        "column_name": check.column_name,
        "kind": check.kind,
        "severity": check.severity,
        "success": verdict.success,
        "failed_rows": verdict.failed_rows,
        "details": verdict.details,
    }


def _line(target: _Target, verdicts: Sequence[Verdict], took_s: float) -> str:
    failed = [verdict.check.name for verdict in verdicts if not verdict.success]
    result = f"not met: {', '.join(failed)}" if failed else "all met"
    size = f"{counted(target.extent.rows, 'row')}, {counted(len(verdicts), 'expectation')}"
    size += f" in {texts.duration(took_s * 1e3)}"
    return f"{target.table.name}: {size}, {result}"
