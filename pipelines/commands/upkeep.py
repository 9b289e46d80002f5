"""The commands upkeep, rebuild and backfill: maintain tables."""

from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Annotated

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError, nearest
from quotaflow.pipelines.terminal import logs, output, times
from quotaflow.pipelines.terminal.layout import Layout
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.counted import counted

Tables = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TABLE]...",
        help="Tables; all of them without a name.",
        autocompletion=options.relations,
    ),
]
Skipped = Annotated[
    list[str] | None,
    typer.Option(
        "--except", metavar="TABLE", help="Not this table.", autocompletion=options.relations
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]
RepairOnly = Annotated[
    bool, typer.Option("--repair", help="Only leave lost files out, and fill the tables again.")
]
From = Annotated[str, typer.Option("--from", metavar="TIME", help=f"From {times.FORMS}.")]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help=f"Up to {times.FORMS} [the newest row]."),
]
Slice = Annotated[
    str, typer.Option("--slice", metavar="1d", help="Time per slice; each slice is one commit.")
]


def upkeep(
    tables: Tables = None,
    *,
    skipped: Skipped = None,
    dry_run: DryRun = False,
    repair: RepairOnly = False,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """Remove rows past their retention, roll up old windows, compact and delete files.

    Conf sets how long rows are kept (upkeep.retention_days), and when windows of quota_usage become
    rows of minutes and hours (upkeep.minutes_after_days, upkeep.hours_after_days). Rows that a
    query has not read stay, and are reported; removed rows are counted in pipeline_progress. Files
    are deleted a week after the last table version that needs them (upkeep.vacuum_after_h). Run it
    once a day. Needs a JDK only for tables in a catalog.

    With --repair it only leaves lost or broken files out of tables, and prints how many rows are
    lost, and their times. Then it fills the tables again: facts from topics that still have them,
    results and answers by their rules. That needs a JDK, as backfill and rebuild do.

    Example: quotaflow upkeep --dry-run

    Example: quotaflow upkeep --repair requests

    Example: quotaflow upkeep --except config_changes --except plans

    Example: quotaflow upkeep requests --set upkeep.retention_days.requests=14
    """
    settings = conf.of_tables()
    from quotaflow.pipelines.maintenance.upkeep import (  # noqa: PLC0415  imports pyspark
        UpkeepOutcome,
        run_upkeep,
    )

    chosen, left_out = tables or [], skipped or []
    _check_tables([*chosen, *left_out])
    if repair:
        _repair(settings, [name for name in chosen or TABLES if name not in left_out], dry=dry_run)
        return
    now = datetime.now(UTC)
    done = run_upkeep(settings, chosen, now, logs.report, skipped=left_out, dry=dry_run)
    names = [field.name for field in fields(UpkeepOutcome)]
    rows = (asdict(outcome) for outcome in done)
    output.write(rows, names, layout, by_importance=False)


def _repair(conf: Conf, names: list[str], *, dry: bool) -> None:
    from quotaflow.pipelines.maintenance import repair  # noqa: PLC0415  as above

    if not repair.repair(conf, names, logs.report, dry=dry):
        logs.report("no file is lost or broken")


def _check_tables(names: list[str]) -> None:
    for name in names:
        if name not in TABLES:
            raise ConfigError(f"no table {name}{nearest(name, list(TABLES))}")


def rebuild(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE", help="A result, or client_metrics.", autocompletion=options.relations
        ),
    ],
    *,
    since: From,
    until: Until = None,
    at_once: Slice = "1d",
    yes: Annotated[
        bool, typer.Option("--yes", help="Also replace rows whose facts were removed.")
    ] = False,
    conf: options.ConfOptions,
) -> None:
    """Compute rows of a result again from its facts, late ones included.

    Replaces one slice of time after the other, each in one commit, so a stopped run leaves whole
    slices. Checkpoints do not change. client_metrics are decoded again from telemetry_pushes, by
    the record time of the payload. Needs a JDK, as run does.

    Example: quotaflow rebuild traffic --from 2d

    Example: quotaflow rebuild quota_usage --from 2026-11-01 --until 2026-11-08 --slice 6h
    """
    first, last = _between(since, until)
    size_s = times.seconds(at_once)
    settings = conf.of_tables()
    from quotaflow.pipelines.maintenance import rebuild as rebuilding  # noqa: PLC0415  imports pyspark

    rows = rebuilding.rebuild(
        settings, rebuilding.RebuildRequest(table, first, last, size_s, yes), logs.report
    )
    logs.report(f"{counted(rows, 'row')} written")


def backfill(
    job: Annotated[
        str, typer.Argument(metavar="[JOB]", help="A job that reads a topic.")
    ] = "ingest_request_log",
    *,
    since: From,
    until: Until = None,
    at_once: Slice = "1h",
    conf: options.ConfOptions,
) -> None:
    """Add records of a past time to the tables that lack them, from the topic.

    Reads records by their Kafka timestamp, as far as the job has read; a record that is in a table
    already is skipped, so a second run adds nothing. Checkpoints do not change, and the next
    `quotaflow run` computes what follows from the rows. Needs a JDK, as run does.

    Example: quotaflow backfill --from 6h --until 2h

    Example: quotaflow backfill ingest_receiver --from 2026-11-01 --until 2026-11-02
    """
    first, last = _between(since, until)
    size_s = times.seconds(at_once)
    settings = conf.of_tables()
    from quotaflow.pipelines.jobs import selection  # noqa: PLC0415
    from quotaflow.pipelines.jobs.registry import JOBS  # noqa: PLC0415
    from quotaflow.pipelines.maintenance import backfill as backfilling  # noqa: PLC0415  imports pyspark

    names = list(backfilling.jobs(settings))
    if job in JOBS:
        selection.refuse_off(JOBS[job], settings)
    if job not in names:
        raise ConfigError(f"no job {job} reads a topic{nearest(job, names)}")
    added = backfilling.backfill(settings, job, TimeRange(first, last), size_s, logs.report)
    logs.report(f"{counted(sum(added.values()), 'row')} added")
    if added.get("telemetry_pushes"):
        since = f"{first:%Y-%m-%dT%H:%MZ}"
        logs.report(f"for their points: quotaflow rebuild client_metrics --from {since}")


def _between(since: str, until: str | None) -> tuple[datetime, datetime | None]:
    now = datetime.now(UTC)
    first = times.since(since, now, "--from")
    last = times.since(until, now, "--until") if until else None
    if first >= (last or now):
        raise ConfigError(f"--from {since} is not before {f'--until {until}' if until else 'now'}")
    return first, last
