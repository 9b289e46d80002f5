"""`quotaflow rebuild`: computes a result again from its facts, one slice of time after the other.

The rule is the one that streaming runs, over all facts of a slice, late ones included. Each slice
is replaced in one commit, so a crash leaves whole slices; no checkpoint is read or written. Rows
whose facts retention removed stay. Windows replace rolled-up rows; upkeep rolls them up again.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from quotaflow.pipelines.compute.maintainer import ResultMaintainer
from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError, JobError, NeverMadeError, nearest
from quotaflow.pipelines.facts import client_metrics
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.results.answers.refresh import refresh
from quotaflow.pipelines.spark import failures, session
from quotaflow.pipelines.spark.spark_errors import spark_errors
from quotaflow.pipelines.streaming.sinks import Batch, Count
from quotaflow.pipelines.warehouse.time_ranges import TimeRange, sliced
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.declared import CLIENT_METRICS, PIPELINE_PROGRESS, TELEMETRY_PUSHES
from quotaflow.udfs.counted import counted, noun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB = "rebuild"
Report = Callable[[str], None]
Rows = Mapping[str | None, int]


@dataclass(frozen=True, slots=True)
class RebuildRequest:
    """What to rebuild: rows of a table from `since` to `until`, or to the newest row.

    With `drop_uncomputable` also rows whose facts were removed; those rows are lost.
    """

    table: str
    since: datetime
    until: datetime | None
    slice_s: int
    drop_uncomputable: bool = False


def results(conf: Conf) -> dict[str, list[Result]]:
    """Results by the table they fill; several may fill one table."""
    by_table: dict[str, list[Result]] = {}
    for job in JOBS.values():
        for result in job.results(conf) if job.results else ():
            by_table.setdefault(result.table.name, []).append(result)
    return by_table


def rebuild(conf: Conf, request: RebuildRequest, report: Report) -> int:
    """Rebuild the requested rows; returns the number of rows written.

    Raises ConfigError for a table that is not computed from facts, NeverMadeError for one that
    does not exist.
    """
    of_table = results(conf)
    names = sorted([*of_table, CLIENT_METRICS.name])
    if request.table not in names:
        raise ConfigError(
            f"{request.table} is not rebuilt from facts{nearest(request.table, names)}"
        )
    warehouse = Warehouse(conf.warehouse)
    with warehouse.lock():
        spark = session.get(conf.spark, report)
        if not warehouse.exists(spark, request.table):
            raise NeverMadeError(request.table, warehouse.conf.location)
        again = Rebuild(conf, warehouse, spark, report)
        if request.table == CLIENT_METRICS.name:
            _ensure(warehouse, spark, [TELEMETRY_PUSHES, CLIENT_METRICS])
            written = again.points(request)
        else:
            fills = of_table[request.table]
            lookups = [context.table for result in fills for context in result.lookups]
            _ensure(warehouse, spark, [t for r in fills for t in (r.facts, r.table)] + lookups)
            written = sum(again.result(result, request) for result in fills)
        refresh(conf.warehouse, lambda: spark, datetime.now(UTC), report)
        for name in _read_by(of_table, request.table):
            report(f"{name} is computed from {request.table}: rebuild it too")
        return written


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Computes rows of one warehouse again."""

    conf: Conf
    warehouse: Warehouse
    spark: "SparkSession"
    report: Report

    def result(self, result: Result, request: RebuildRequest) -> int:
        """Replace the rows of one result, slice by slice; returns the number of new rows."""
        name, since = result.table.name, result.bucket(request.since)
        until = request.until and result.bucket(request.until, up=True)
        if until and (result.carry_s or result.runs_forward):
            self.report(
                f"{name}: each row depends on those before, so the rebuild goes to the newest"
            )
            until = None
        if not request.drop_uncomputable:
            since = self._computable_since(result, since, until)
        maintainer = ResultMaintainer((result,), self.conf.results)
        return self._replace_ranges(
            name,
            result.slices(TimeRange(since, until), datetime.now(UTC), request.slice_s),
            lambda time_range, batch: maintainer.rebuild(batch, self.spark, time_range),
        )

    def points(self, request: RebuildRequest) -> int:
        """Decode again the points of payloads whose record time is in the requested range."""
        name, since = CLIENT_METRICS.name, request.since
        kept_since = self.warehouse.kept_since(self.spark, TELEMETRY_PUSHES.name)
        if kept_since and kept_since > since and not request.drop_uncomputable:
            self._report_kept(name, TimeRange(since, kept_since), "record_time", TELEMETRY_PUSHES)
            since = kept_since
        size = timedelta(seconds=request.slice_s)
        time_ranges = sliced(since, request.until, datetime.now(UTC), size)
        points = client_metrics.PointIngest(self.conf)
        return self._replace_ranges(
            name,
            time_ranges,
            lambda time_range, batch: points.replace(self.spark, batch, time_range),
        )

    def _replace_ranges(
        self, name: str, time_ranges: list[TimeRange], replace: Callable[[TimeRange, Batch], Rows]
    ) -> int:
        run_id, written = f"{JOB} {uuid.uuid4()}", Counter[str | None]()
        for number, time_range in enumerate(time_ranges):
            try:
                rows = replace(time_range, Batch(self.warehouse, JOB, run_id, number))
            except spark_errors() as error:
                raise JobError(
                    f"{name}: {failures.one_line(error)}; all before is rebuilt: go on with --from "
                    f"{time_range.start:%Y-%m-%dT%H:%M:%SZ}"
                ) from error
            n = sum(rows.values())
            self.report(
                f"{name}: {counted(n, 'row')} of {range_text(time_range)}, "
                f"{number + 1} of {len(time_ranges)}"
            )
            written.update(rows)
        for cluster_id, n in written.items():
            # The key of pipeline_progress has the query id, not the cluster: one id per cluster.
            batch = Batch(
                self.warehouse,
                JOB,
                f"{run_id} {cluster_id}" if cluster_id else run_id,
                len(time_ranges),
            )
            batch.report(
                lambda: self.spark, [Count("out", n, name)], cluster_id, time_ranges[0].start
            )
        return written.total()

    def _computable_since(
        self, result: Result, since: datetime, until: datetime | None
    ) -> datetime:
        """The time from which all needed facts exist; rows before it stay, and are reported."""
        kept_since = self.warehouse.kept_since(self.spark, result.facts.name)
        if kept_since is None:
            return since
        whole = result.computable([TimeRange(since, until)], kept_since)
        first = whole[0].start if whole else until
        if first is None or first <= since:
            return since
        self._report_kept(
            result.table.name, TimeRange(since, first), result.table.time, result.facts
        )
        return first

    def _report_kept(self, name: str, uncomputable: TimeRange, time: str, facts: Table) -> None:
        rows = self.warehouse.read(self.spark, name).where(uncomputable.condition(time)).count()
        self.report(
            f"{name}: {counted(rows, 'row')} of {range_text(uncomputable)} "
            f"{noun(rows, 'stays as it is: its', 'stay as they are: their')} "
            f"{facts.name} were removed (--yes replaces them by what follows from the rest)"
        )


def _ensure(warehouse: Warehouse, spark: "SparkSession", needed: list[Table]) -> None:
    by_name = {table.name: table for table in [*needed, PIPELINE_PROGRESS]}
    warehouse.ensure(lambda: spark, by_name.values())


def _read_by(of_table: dict[str, list[Result]], table: str) -> list[str]:
    """Other results that are computed from the table, or look it up."""
    reads = {
        name: {t.name for r in group for t in (r.facts, *(c.table for c in r.lookups))}
        for name, group in of_table.items()
    }
    return [name for name, read in reads.items() if table in read and name != table]


def range_text(time_range: TimeRange) -> str:
    """The time range as text."""
    end = f"{time_range.end:%Y-%m-%d %H:%M}" if time_range.end else "now"
    return f"{time_range.start:%Y-%m-%d %H:%M} to {end}"
