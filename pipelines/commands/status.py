"""The command status: the health of the pipeline, for people and for cron."""

import time
from collections.abc import Iterator
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.live import Live
from rich.text import Text

from quotaflow.pipelines.areas import diagnoses
from quotaflow.pipelines.commands import options
from quotaflow.pipelines.monitoring import health
from quotaflow.pipelines.monitoring.health import HealthReport
from quotaflow.pipelines.monitoring.job_health import UPKEEP, JobHealth
from quotaflow.pipelines.terminal import grid, output, progress, texts, values
from quotaflow.pipelines.terminal.layout import Layout
from quotaflow.udfs.counted import counted

if TYPE_CHECKING:
    from quotaflow.pipelines.config import Conf

_WATCH_S = 5
_MAX_INCIDENTS = 3
_COLUMNS = [
    *("job", "triggered", "batch", "took", "rows_per_s", "behind", "newest_event", "rows_1h"),
    *("late_1h", "quarantined_1h", "state"),
]
_FIELDS = [field.name for field in fields(JobHealth)]
_AGAIN = "each counts once: does a shipper read a file from its start again?"


def status(
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every 5 s until Ctrl-C.")] = False,
    *,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """Show open incidents, the health of each job, and what waits for an operator.

    Reads tables, checkpoints and the lock; needs neither a JVM nor the cluster. Exit code 1 if
    there is a problem; conf's section health has the thresholds. --json has all of it as one
    object. --csv, --columns, --wide and -x have a row per job, with exact values.

    Example: quotaflow status --watch
    """
    settings = conf.of_tables()
    if watch and layout == Layout():
        _watch(settings)
        return
    with progress.shown("reading tables and checkpoints"):
        report = health.read(settings, datetime.now(UTC))
    if layout.as_json and layout.columns is None:
        output.lines([values.json_line(_plain(report))])
    elif layout != Layout():
        output.write([_as_json(asdict(job)) for job in report.jobs], _FIELDS, layout)
    else:
        output.lines(lines(report))
    if not report.is_well:
        raise typer.Exit(1)


def _watch(settings: "Conf") -> None:
    """Redraw in place. Names are shown as text with any content."""
    with Live(refresh_per_second=1, transient=False) as live:
        while True:
            live.update(_text(health.read(settings, datetime.now(UTC))), refresh=True)
            time.sleep(_WATCH_S)


def _text(report: HealthReport) -> Text:
    shown = Text.from_ansi("\n".join([f"{report.at:%Y-%m-%d %H:%M:%S} UTC", *lines(report)]))
    shown.no_wrap = True
    return shown


def lines(report: HealthReport) -> Iterator[str]:
    """Open incidents, a table of the jobs, and what waits for an operator."""
    yield from map(values.visible, _incidents(report))
    if report.jobs:
        yield from grid.lines([_row(job, report.at) for job in report.jobs], _COLUMNS)
    yield from map(values.visible, _summary(report))


def _incidents(report: HealthReport) -> Iterator[str]:
    """The lines above the table of jobs."""
    for row in report.incidents[:_MAX_INCIDENTS]:
        yield f"incident  {diagnoses.incident(row)}"
    if len(report.incidents) > _MAX_INCIDENTS:
        yield f"          {len(report.incidents) - _MAX_INCIDENTS} more: quotaflow show incidents"
    if report.incidents:
        yield ""


def _summary(report: HealthReport) -> Iterator[str]:
    """The lines below the table of jobs."""
    yield ""
    yield f"writes now      {report.lock_holder or 'nobody'}"
    yield f"configs owned   {report.owned_configs}, {report.overdue_configs} overdue"
    yield f"alerts open     {report.open_alerts}"
    yield f"plan waiting    {_plan(report)}"
    yield f"checks failing  {_checks(report)}"
    free = ", ".join(f"{disk} {texts.share(share)}" for disk, share in report.free_share.items())
    yield f"disk free       {free}"
    if report.stop_reason:
        yield f"stopped         {report.stop_reason}"
    yield ""
    for line in dict.fromkeys(line for job in report.jobs for line in job.problems):
        yield f"! {', '.join(job.job for job in report.jobs if line in job.problems)}: {line}"
    yield from (f"! {line}" for line in report.problems)
    silent = [job for job in report.jobs if job.silent_s is not None and not job.problems]
    for job in silent:
        since = texts.duration((job.silent_s or 0) * 1e3)
        if job.job == UPKEEP:
            yield f"? {UPKEEP}: the last run was {since} ago: run `quotaflow upkeep` once a day"
        else:
            yield f"? {job.job}: no batch for {since}, longer than usual: is its run alive?"
    for job in report.jobs:
        if job.rows_duplicate:
            again = counted(job.rows_duplicate, "line")
            yield f"? {job.job}: {again} came a second time in its last hour, and {_AGAIN}"
        if job.rows_refused and not job.problems:
            points = counted(job.rows_refused, "point")
            yield f"? {job.job}: its receiver refused {points} in its last hour of work"
    if report.is_well:
        refused = any(job.rows_refused for job in report.jobs)
        is_silent = silent or report.incidents or refused
        yield "no job failed" if is_silent else "all is well"


def _plan(report: HealthReport) -> str:
    if not report.pending_changes:
        return "none"
    return f"{counted(report.pending_changes, 'change')}: quotaflow apply {report.plan_id}"


def _checks(report: HealthReport) -> str:
    return ", ".join(f"{n} {severity}" for severity, n in report.failed_checks.items()) or "none"


def _row(job: JobHealth, now: datetime) -> dict[str, Any]:
    return {
        "job": job.job,
        "triggered": _ago(job.last_trigger, now),
        "batch": job.batch_id,
        "took": texts.duration(job.duration_ms) or None,
        "rows_per_s": job.rows_per_s,
        "behind": _behind(job),
        "newest_event": _ago(job.newest_event, now),
        "rows_1h": job.rows_in,
        "late_1h": job.rows_late,
        "quarantined_1h": job.rows_quarantined,
        "state": _state(job),
    }


def _state(job: JobHealth) -> str:
    if job.problems or job.silent_s is None:
        return "unwell" if job.problems else "well"
    return "old" if job.job == UPKEEP else "silent"


def _behind(job: JobHealth) -> str | None:
    if job.behind_s is None:
        return None
    if not job.behind_s:
        return "0"
    offsets, size = job.behind_offsets, job.behind_bytes
    amount = counted(offsets, "record") if offsets else counted(size or 0, "byte")
    return f"{amount}, {texts.duration(job.behind_s * 1e3)}"


def _ago(moment: datetime | None, now: datetime) -> str | None:
    return f"{texts.age(moment, now)} ago" if moment else None


def _plain(report: HealthReport) -> dict[str, Any]:
    """The report as JSON's own types."""
    whole: dict[str, Any] = _as_json(asdict(report))
    return whole | {"is_well": report.is_well}


def _as_json(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case dict():
            return {key: _as_json(each) for key, each in value.items()}
        case list() | tuple():
            return [_as_json(each) for each in value]
        case _:
            return value
