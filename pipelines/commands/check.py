"""The command check: expectations on the rows of tables."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa
import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.terminal import logs, output, times, values
from quotaflow.pipelines.terminal.layout import Layout
from quotaflow.schemas.tables.declared import QUALITY_RESULTS
from quotaflow.udfs.counted import counted

if TYPE_CHECKING:
    from quotaflow.pipelines.quality.check import CheckReport

_NAMES = ["suite", "expectation", "severity", "failed_rows", "details"]

Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help=f"Rows since {times.FORMS}; else new rows."),
]
Tables = Annotated[
    list[str] | None,
    typer.Option("--table", metavar="NAME", help="Only this table; may be given several times."),
]


def check(
    *,
    since: Since = None,
    tables: Tables = None,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """Check new rows of the tables against the expectations on them.

    Results go to quality_results (view current_quality). Shows expectations that were not met, with
    what to do and a query for the rows; with --json and --csv, all that were checked. Exit code 1
    if a critical one was not met: plan then blocks changes whose evidence is in that table, until a
    check passes. Needs a JDK, and the extra quality.

    Example: quotaflow check

    Example: quotaflow check --table requests --since 2h
    """
    now = datetime.now(UTC)
    start = times.since(since, now) if since else None
    settings = conf.of_tables()
    from quotaflow.pipelines.quality import check as quality  # noqa: PLC0415  imports pyspark

    request = quality.CheckRequest(tables or [], start)
    report = quality.check(settings, request, now, logs.report)
    _show(report, layout)
    _note_counts(report)
    if report.is_critical:
        raise typer.Exit(1)


def _show(report: "CheckReport", layout: Layout) -> None:
    is_for_people = not layout.is_for_programs
    chosen = report.failed if is_for_people else report.rows
    rows = values.rows(pa.Table.from_pylist(list(chosen), QUALITY_RESULTS.arrow).to_batches())
    if chosen or not is_for_people:
        names = _NAMES if is_for_people else QUALITY_RESULTS.column_names
        output.write(rows, names, layout, by_importance=False)
    if layout == Layout():
        output.lines(report.advice)


def _note_counts(report: "CheckReport") -> None:
    if not report.rows:
        logs.report("no new rows since the last check: nothing was checked")
        return
    critical = sum(row["severity"] == "critical" for row in report.failed)
    warnings = len(report.failed) - critical
    logs.report(
        f"{counted(len(report.rows), 'expectation')}: {critical} critical and "
        f"{counted(warnings, 'other')} not met"
    )
