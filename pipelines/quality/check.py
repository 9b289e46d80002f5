"""`quotaflow check`: checks the new rows of tables against their expectations."""

import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError, nearest
from quotaflow.pipelines.quality import new_rows, suites, wording
from quotaflow.pipelines.quality.new_rows import LastCheck, NewRows
from quotaflow.pipelines.quality.quality_results import QualityResults, Row
from quotaflow.pipelines.quality.suites import CRITICAL, SQL_TEXT, Check
from quotaflow.pipelines.quality.validation import Validation, Verdict, great_expectations
from quotaflow.pipelines.spark import frames, session
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import QUALITY_RESULTS
from quotaflow.udfs.counted import counted, noun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Report = Callable[[str], None]
Suites = Mapping[str, Sequence[Check]]


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

    suite: str
    frame: "DataFrame"
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
        spark = session.get(session.short_lived(conf.spark), report)
        validation = Validation()
        warehouse.ensure(lambda: spark, [QUALITY_RESULTS])
        results = QualityResults(spark, warehouse)
        max_lateness = timedelta(seconds=conf.results.max_lateness_s)
        targets = _targets(results, chosen, request.since, max_lateness)
        tables = counted(len(targets), "table holds", "tables hold")
        others = len(chosen) - len(targets)
        report(f"{tables} something new, {others} {noun(others, 'does', 'do')} not")
        if not targets:
            return CheckReport([])
        _register(spark, warehouse, [check for target in targets for check in chosen[target.suite]])
        own = {"run_id": uuid.uuid4().hex, "event_time": now}
        rows: list[Row] = []
        advice: list[str] = []
        for target in targets:
            began = time.monotonic()
            verdicts = validation.verdicts(target.suite, chosen[target.suite], target.frame)
            report(_line(target, verdicts, time.monotonic() - began))
            of_table = own | _of_table(target, now)
            rows += [of_table | _of_check(verdict) for verdict in verdicts]
            failed = (verdict.check for verdict in verdicts if not verdict.success)
            advice += [wording.advice(TABLES[target.suite], each) for each in failed]
        results.keep(rows)
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
    results: QualityResults, chosen: Suites, since: datetime | None, max_lateness: timedelta
) -> list[_Target]:
    """The tables with new rows or, with `since`, with any rows since then."""
    spark, warehouse = results.spark, results.warehouse
    made = [TABLES[name] for name in chosen if warehouse.exists(spark, name)]
    for table in made:
        warehouse.check_readable(spark, table.name)
    lasts = {} if since else results.last()
    targets = []
    for table in made:
        last = lasts.get(table.name)
        start = since or new_rows.since(last, max_lateness)
        # One query for each: the analysis of a union takes the square of their number.
        written = new_rows.rows_since(warehouse.read_written(spark, table.name), table, start)
        frame = new_rows.at_hand(written)
        extent = new_rows.extent(table, frame)
        targets.append(_Target(table.name, frame, start, last, extent))
    return [target for target in targets if target.extent.is_new(target.last)]


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
        "suite": target.suite,
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
    return f"{target.suite}: {size}, {result}"
