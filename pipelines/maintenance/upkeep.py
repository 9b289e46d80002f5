"""`quotaflow upkeep`: removes old rows, rolls up, compacts small files, deletes unused files.

The order makes it safe: no row that a query has not read is removed, and no file that a query may
still read is deleted. A second run finds nothing to do.
"""

import shutil
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import JobError
from quotaflow.pipelines.jobs import backlog
from quotaflow.pipelines.jobs.backlog import Backlog
from quotaflow.pipelines.maintenance import retention, roll_up
from quotaflow.pipelines.maintenance.roll_up import RollUp
from quotaflow.pipelines.maintenance.stored_tables import StoredTables, stored_tables
from quotaflow.pipelines.spark import failures, session
from quotaflow.pipelines.spark.spark_errors import spark_errors
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.terminal import logs
from quotaflow.pipelines.warehouse.warehouse import Detail, OpenSession, Warehouse
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import PIPELINE_PROGRESS
from quotaflow.udfs.counted import counted

JOB = "upkeep"
Report = Callable[[str], None]
_TABLES_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class UpkeepOutcome:
    """What upkeep did to a table, or would do: rows and files of its newest version, disk bytes.

    Disk bytes include files of older versions; None for tables in a catalog.
    """

    name: str
    rows_removed: int = 0
    files_before: int = 0
    files_after: int | None = None
    bytes_before: int = 0
    bytes_after: int | None = None
    disk_bytes_before: int | None = None
    disk_bytes_after: int | None = None
    note: str | None = None


def run_upkeep(
    conf: Conf,
    names: Collection[str],
    now: datetime,
    report: Report,
    *,
    skipped: Collection[str] = (),
    dry: bool = False,
) -> list[UpkeepOutcome]:
    """Maintain the named tables, or all, but not those that are skipped.

    `dry` only reports what would be done.
    """
    warehouse = Warehouse(conf.warehouse)
    with warehouse.lock():
        open_session = session.opener(session.short_lived(conf.spark), report)
        tables = stored_tables(warehouse, open_session, conf.results.task_memory_mb)
        chosen = [
            table
            for name, table in TABLES.items()
            if (not names or name in names) and name not in skipped and tables.exists(table)
        ]
        if not dry and chosen:
            needed = {PIPELINE_PROGRESS.name, *(table.name for table in chosen)}
            warehouse.ensure(open_session, [t for name, t in TABLES.items() if name in needed])
        upkeep = Upkeep(tables, open_session, conf, warehouse, now, report, dry)
        # One after the other: each appends to pipeline_progress, which is the last table.
        pending = [upkeep.without_old_rows(table) for table in chosen]
        if TABLES["quota_usage"] in chosen:
            upkeep.roll_up()
        outcomes = list(upkeep.compacted(pending))
        if not names:
            upkeep.drop_left_checkpoints()
        return outcomes


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Maintains the tables of one warehouse at one time."""

    tables: StoredTables
    open_session: OpenSession
    conf: Conf
    warehouse: Warehouse
    now: datetime
    report: Report
    dry: bool = False

    def without_old_rows(self, table: Table) -> "PendingTable":
        """Remove rows past the table's retention, unless a query has not read them."""
        detail = self._detail(table)
        behind = backlog.backlogs(self.open_session, self.warehouse, table.name)
        pending = PendingTable(table, detail, self._disk_bytes(table), behind)
        days = self.conf.upkeep.days(table.name)
        if days is None:
            return pending
        now_ms = time.time_ns() // 1_000_000
        batch = Batch(self.warehouse, JOB, JOB, now_ms, has_time_id=True)
        old = retention.find(self.tables, table, retention.cutoff(self.now, days))
        if not old.total:
            return pending
        wait = retention.reason_to_wait(self.tables, self.warehouse, old, behind)
        if wait:
            rows = counted(old.total, "row is too old and stays", "rows are too old and stay")
            return replace(pending, note=f"{rows}: {wait}")
        if not self.dry:
            rows = counted(old.total, "row")
            self.report(f"{table.name}: removing {rows} from before {old.before.date()}")
            retention.remove(self.tables, self.open_session, batch, old)
        return replace(pending, rows_removed=old.total)

    def roll_up(self) -> None:
        """Roll up old windows of `quota_usage`, before its new files are compacted."""
        rolling = RollUp(self.open_session, self.conf, self.warehouse, self.report)
        due = rolling.due(self.now)
        if self.dry:
            for old in due:
                self.report(roll_up.line(old))
        else:
            rolling.run(due)

    def compacted(self, pending: "Collection[PendingTable]") -> Iterator[UpkeepOutcome]:
        """Compact and vacuum tables, some at a time."""
        pool = ThreadPoolExecutor(_TABLES_AT_ONCE, "upkeep")
        failed = []
        try:
            for each, done in [(each, pool.submit(self._compacted, each)) for each in pending]:
                outcome = done.result()
                failed += [each.table.name] if outcome is None else []
                if outcome:
                    self._report_note(outcome)
                    yield outcome
        finally:
            pool.shutdown(cancel_futures=True)
        if failed:
            raise JobError(f"upkeep failed for {', '.join(failed)}: see above; run it again")

    def drop_left_checkpoints(self) -> None:
        """Delete old checkpoints of recreated topics, which were kept in case of an error."""
        for folder in sorted(self.conf.warehouse.checkpoint_folder.glob("*.old")):
            left = datetime.fromtimestamp(folder.stat().st_mtime, UTC)
            if left < self.now - self._vacuum_after:
                self.report(f"{'would delete' if self.dry else 'deleting'} the checkpoint {folder}")
                if not self.dry:
                    shutil.rmtree(folder)

    def _compacted(self, pending: "PendingTable") -> UpkeepOutcome | None:
        try:
            note = "; ".join(filter(None, (pending.note, self._optimized(pending)))) or None
            after = (
                None if self.dry else self.warehouse.detail(self.open_session, pending.table.name)
            )
        except self._failures as error:
            self.report(logs.warning(f"{pending.table.name}: {failures.one_line(error)}"))
            return None
        return UpkeepOutcome(
            name=pending.table.name,
            rows_removed=pending.rows_removed,
            files_before=pending.detail.files,
            files_after=after.files if after else None,
            bytes_before=pending.detail.size_bytes,
            bytes_after=after.size_bytes if after else None,
            disk_bytes_before=pending.disk_bytes,
            disk_bytes_after=self._disk_bytes(pending.table) if after else None,
            note=note,
        )

    def _optimized(self, pending: "PendingTable") -> str | None:
        """Join files and delete unused ones; returns why one of them was skipped."""
        # Not ZORDER BY, which writes every file of the table again each time. Rows arrive in order
        # of time, so readers skip as many files without it.
        # Today's partition is still being replaced: compacting it now is in vain.
        if not self.dry and pending.detail.files > 1:
            self.tables.compact(pending.table, self.now.astimezone(UTC).date())
        for query in pending.behind:
            if query.since is None or query.since < self.now - self._vacuum_after:
                since = f" since {query.since:%Y-%m-%d}" if query.since else ""
                return f"no file deleted: {query.job} has not read version {query.version}{since}"
        if pending.disk_bytes == pending.detail.size_bytes and not pending.rows_removed:
            return None
        # To vacuum adds to the table's log even if it finds nothing.
        hours = self.conf.upkeep.vacuum_after_h
        files = self.tables.unused(pending.table, hours)
        if self.dry:
            return f"{counted(files, 'file')} to delete" if files else None
        if files:
            self.tables.vacuum(pending.table, hours)
        return None

    def _report_note(self, outcome: UpkeepOutcome) -> None:
        if outcome.note:
            self.report(f"{outcome.name}: {outcome.note}")

    def _detail(self, table: Table) -> Detail:
        return self.warehouse.detail(self.open_session, table.name)

    def _disk_bytes(self, table: Table) -> int | None:
        if self.conf.warehouse.catalog_schema:
            return None
        return self.warehouse.place.disk_bytes(table.name)

    @property
    def _failures(self) -> tuple[type[Exception], ...]:
        of_spark = spark_errors() if self.conf.warehouse.catalog_schema else ()
        return (JobError, *of_spark)

    @property
    def _vacuum_after(self) -> timedelta:
        return timedelta(hours=self.conf.upkeep.vacuum_after_h)


@dataclass(frozen=True, slots=True)
class PendingTable:
    """A table whose old rows were removed, its details before, and the queries that are behind."""

    table: Table
    detail: Detail
    disk_bytes: int | None
    behind: list[Backlog]
    rows_removed: int = 0
    note: str | None = None
