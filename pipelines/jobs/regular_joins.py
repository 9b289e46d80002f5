"""Joins small files of facts while jobs run, so that a day of them is few files before upkeep."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import JobError, QueryError
from quotaflow.pipelines.jobs.job import Job
from quotaflow.pipelines.terminal import logs
from quotaflow.pipelines.warehouse.small_files import SmallFiles
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import FACTS, TABLES

JOIN_EVERY_S = 300


class RegularJoins:
    """Joins the facts that some jobs fill, on a thread of its own: no job waits for it.

    In a catalog the platform does it. Spark's own appends in a folder do not exclude those of
    others, so tables that it fills there wait for upkeep.
    """

    def __init__(
        self, conf: Conf, warehouse: Warehouse, jobs: Sequence[Job], report: Callable[[str], None]
    ) -> None:
        self.tables = _tables(conf, jobs)
        self.warehouse = warehouse
        self.memory_mb = conf.results.task_memory_mb
        self.report = report
        self.due_at = time.monotonic() + JOIN_EVERY_S
        self.stopped = Event()
        self._worker = ThreadPoolExecutor(1, "joins")
        self._running: Future[None] | None = None

    def begin_if_due(self) -> None:
        """Begin to join if the last time is long enough ago."""
        if time.monotonic() >= self.due_at and (self._running is None or self._running.done()):
            self.due_at = time.monotonic() + JOIN_EVERY_S
            self._running = self._worker.submit(self.join)

    def join(self) -> None:
        """Join what is due, table by table. A failure is reported, and tried again when due."""
        for table in self.tables:
            small = SmallFiles(self.warehouse, table, self.memory_mb)
            try:
                small.join(self.stopped)
            except (JobError, QueryError) as error:
                self.report(logs.warning(f"small files of {table.name} stay: {error}"))

    def stop(self) -> None:
        """End what is being joined, which leaves the table as it is."""
        self.stopped.set()
        self._worker.shutdown()


def _tables(conf: Conf, jobs: Sequence[Job]) -> list[Table]:
    if conf.warehouse.catalog_schema:
        return []
    by_spark = {"client_metrics"} if conf.ingest.otlp_topic and not conf.warehouse.is_store else {}
    names = {table.name for job in jobs for table in job.fills}
    return [TABLES[name] for name in sorted(FACTS & names - {*by_spark})]
