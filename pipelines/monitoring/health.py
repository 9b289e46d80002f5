"""The health of the pipeline, read from tables, checkpoints and the lock, without a JVM."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from quotaflow.pipelines.areas import diagnoses
from quotaflow.pipelines.areas.changes import BATCHES, SAVED
from quotaflow.pipelines.areas.finding import RowProblem
from quotaflow.pipelines.areas.pipeline import (
    CHECK_FAILED,
    CHECK_WARNS,
    FAILED_ANSWERS,
    JOBS,
    OPEN_ALERTS,
    USUAL_GAPS,
)
from quotaflow.pipelines.areas.question import everywhere, filled
from quotaflow.pipelines.compute import result_state
from quotaflow.pipelines.config import Conf, WarehouseSection, demo_tables
from quotaflow.pipelines.errors import NeverMadeError
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.planning import restore_plan
from quotaflow.pipelines.feedback.writing import stop_file
from quotaflow.pipelines.monitoring import job_health
from quotaflow.pipelines.monitoring.job_health import JobFacts, JobHealth
from quotaflow.pipelines.streaming import checkpoints
from quotaflow.pipelines.streaming.checkpoints import Checkpoint
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse import delta_log
from quotaflow.pipelines.warehouse.delta_log import UnreadFiles
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.readers import going_on, open_reader
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.counted import counted

_MOST = 1_000
_NEWEST_PLAN = filled(everywhere(SAVED.first_rows), {"limit": "1"})
_CHECKS = {"critical": CHECK_FAILED, "warning": CHECK_WARNS}


@dataclass(frozen=True, slots=True)
class HealthReport:
    """The health at one time; `problems` are those beside the jobs' own.

    `incidents` are the open ones, of the cluster and not of the pipeline: rows of the view.
    `owned_configs` have a value of ours; the lease of `overdue_configs` is over, or their record is
    open. `pending_changes` are those of the newest saved plan, while it is not applied nor too old.
    `failed_answers` keep old rows, each for a reason. `free_share` is the free share of each disk.
    `demo_ended_at` is when the demo ended that left these tables; None: conf names their place, or
    no demo left them.
    """

    at: datetime
    demo_ended_at: datetime | None
    incidents: tuple[Mapping[str, Any], ...]
    jobs: tuple[JobHealth, ...]
    lock_holder: str | None
    stop_reason: str | None
    owned_configs: int
    overdue_configs: int
    open_alerts: int
    plan_id: str | None
    pending_changes: int
    failed_checks: Mapping[str, int]
    failed_answers: Mapping[str, str]
    free_share: Mapping[str, float]
    problems: tuple[str, ...]

    @property
    def is_well(self) -> bool:
        """Whether there is no problem."""
        return not self.problems and not any(job.problems for job in self.jobs)


def read(conf: Conf, now: datetime) -> HealthReport:
    """Read the health. Of tables in a catalog, checkpoints may be out of reach.

    A damaged table is a problem, and what it has is missing.
    """
    damages: list[str] = []
    report = going_on(lambda reader: _read(conf, now, reader), open_reader(conf), damages.append)
    return replace(report, problems=(*damages, *report.problems))


def _read(conf: Conf, now: datetime, reader: Reader) -> HealthReport:
    # The jobs' rows of all time may be many, and one of the questions needs them.
    questions = (journal.SELECT, _NEWEST_PLAN, FAILED_ANSWERS, OPEN_ALERTS, _usual_gaps(now))
    checks = (everywhere(check.count) for check in _CHECKS.values())
    reader.gather_for([*questions, *checks, diagnoses.open_incidents(_MOST)])
    ledger = journal.read_ledger(reader)
    overdue = len(restore_plan.expired(ledger, now)) + len(ledger.open_records)
    plan_id, pending = _pending_plan(reader, now - timedelta(seconds=conf.plan.max_plan_age_s))
    failed = _failed_checks(reader)
    answers = {
        row["answer"]: f"since {row['event_time']:%Y-%m-%d %H:%M} UTC: {row['error']}"
        for row in _rows(reader, FAILED_ANSWERS)
    }
    free = free_shares(conf)
    jobs = tuple(
        job_health.job_health(facts, now, conf.health) for facts in _jobs(reader, conf, now)
    )
    return HealthReport(
        at=now,
        demo_ended_at=demo_tables.ended_at(conf.warehouse),
        incidents=tuple(_rows(reader, diagnoses.open_incidents(_MOST))),
        jobs=jobs,
        lock_holder=Warehouse(conf.warehouse).holder(),
        stop_reason=stop_file.reason(stop_file.path(conf.plan, conf.warehouse)),
        owned_configs=len(ledger.owned),
        overdue_configs=overdue,
        open_alerts=sum(row["n"] for row in _rows(reader, OPEN_ALERTS)),
        plan_id=plan_id,
        pending_changes=pending,
        failed_checks=failed,
        failed_answers=answers,
        free_share=free,
        problems=(
            *_problems(conf, jobs, overdue, failed, free),
            *(f"{name} is not up to date {reason}" for name, reason in answers.items()),
        ),
    )


def _failed_checks(reader: Reader) -> dict[str, int]:
    counts = {severity: _count(reader, check) for severity, check in _CHECKS.items()}
    return {severity: n for severity, n in counts.items() if n}


def _count(reader: Reader, problem: RowProblem) -> int:
    return sum(row["found"] for row in _rows(reader, everywhere(problem.count)))


def _is_out_of_reach(warehouse: WarehouseSection) -> bool:
    """Whether checkpoints are in a volume that is not mounted here."""
    return bool(warehouse.catalog_schema) and not warehouse.checkpoint_folder.is_dir()


def free_shares(conf: Conf) -> dict[str, float]:
    """Free share of the disks of the tables and of the checkpoints, those that are in reach."""
    warehouse = conf.warehouse
    folders = {"checkpoints": warehouse.checkpoint_folder}
    if _is_out_of_reach(warehouse):
        return {}
    if not (warehouse.catalog_schema or warehouse.is_store):
        folders["tables"] = warehouse.folder
    usages = {
        name: shutil.disk_usage(existing_folder(folder)) for name, folder in sorted(folders.items())
    }
    # A file system without a size has 0 blocks, as some network mounts do.
    return {name: usage.free / usage.total for name, usage in usages.items() if usage.total}


def existing_folder(folder: Path) -> Path:
    """The folder itself, or the nearest of its parents that exists."""
    whole = folder.resolve()
    return next(path for path in [whole, *whole.parents] if path.exists())


def _problems(
    conf: Conf,
    jobs: tuple[JobHealth, ...],
    overdue: int,
    failed: Mapping[str, int],
    free: Mapping[str, float],
) -> Iterator[str]:
    if not jobs:
        yield f"no job ever ran on {conf.warehouse.location}: quotaflow run --once"
    if overdue:
        configs = counted(overdue, "config")
        yield f"{configs} should be restored: quotaflow restore --yes, and on a schedule"
    if failed.get("critical"):
        checks = counted(failed["critical"], "critical check fails", "critical checks fail")
        yield f"{checks}: quotaflow show {CHECK_FAILED.table}"
    for name, share in free.items():
        if share < conf.health.min_free_share:
            bound = f"threshold: {texts.share(conf.health.min_free_share)}"
            yield f"the disk of the {name} has {texts.share(share)} free ({bound}): make room"


def _usual_gaps(now: datetime) -> str:
    return filled(USUAL_GAPS, {"since": literal(now - timedelta(days=1))})


def _jobs(reader: Reader, conf: Conf, now: datetime) -> Iterator[JobFacts]:
    """Every job that has a row or a checkpoint."""
    gaps = _rows(reader, _usual_gaps(now))
    usual = {row["job"]: row["gap_s"] for row in gaps}
    in_order = f"{everywhere(JOBS.sql)} ORDER BY last_trigger, job"
    rows = {row["job"]: row for row in _rows(reader, in_order)}
    warehouse = Warehouse(conf.warehouse)
    by_job = checkpoints.load(conf.warehouse.checkpoint_folder)
    is_log_read = not conf.warehouse.catalog_schema and any(each.delta for each in by_job.values())
    tables = _by_id(reader) if is_log_read else {}
    for job in [*by_job, *(name for name in rows if name not in by_job)]:
        checkpoint = by_job.get(job)
        lines = result_state.not_up_to_date(warehouse.checkpoint(job))
        yield JobFacts(
            job,
            rows.get(job, {}),
            checkpoint,
            _unread(warehouse, checkpoint, tables),
            tuple(lines),
            usual.get(job),
            is_out_of_reach=_is_out_of_reach(conf.warehouse),
        )


def _unread(
    warehouse: Warehouse, checkpoint: Checkpoint | None, tables: Mapping[str, str]
) -> UnreadFiles | None:
    # Only a log of files says what is unread.
    if warehouse.conf.catalog_schema or checkpoint is None or checkpoint.delta is None:
        return None
    table = tables.get(checkpoint.delta.table_id)
    # A recreated table has another id: nothing of it was read.
    if table is None:
        return UnreadFiles(is_cut=True)
    return delta_log.of_table(warehouse.place, table, checkpoint.delta.version)


def _by_id(reader: Reader) -> dict[str, str]:
    """The name of each table, by its table id, which checkpoints have."""
    return {reader.table_id(name): name for name in TABLES if reader.is_made(name)}


def _pending_plan(reader: Reader, oldest: datetime) -> tuple[str | None, int]:
    plans = _rows(reader, _NEWEST_PLAN)
    if not plans or plans[0]["event_time"] < oldest:
        return None, 0
    newest = plans[0]
    started = _rows(reader, filled(BATCHES, {"plan_id": literal(newest["plan_id"])}))
    if started and started[0]["at"] is not None and started[0]["at"] >= newest["event_time"]:
        return None, 0
    return newest["plan_id"], newest["changes"]


def _rows(reader: Reader, sql: str) -> list[dict[str, Any]]:
    """The rows of a query; none if a table does not exist yet."""
    try:
        return reader.rows(sql)
    except NeverMadeError:
        return []
