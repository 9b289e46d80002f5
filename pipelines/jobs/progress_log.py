"""The progress of queries: a line per batch for the user, and rows that only the query can count.

A job counts its rows itself, in the same batch, except those that a stateful operator removes
before the job gets them. Their number comes from the query's progress, and is appended once per
batch even if Spark reports the batch twice. The duration of a batch and how far behind it is go to
query_progress, the rows of a minute in one append: an append costs as much as a small batch.

On a busy machine query events come late, and Spark drops some when it cannot keep up. So when a
query ends, its recent batches are read from the query itself. Batches that it no longer has are
reported as missing.
"""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from quotaflow.pipelines.errors import JobError
from quotaflow.pipelines.facts.client_metrics import UNIQUE
from quotaflow.pipelines.jobs.job import Job, JobEnvironment
from quotaflow.pipelines.spark.failures import one_line
from quotaflow.pipelines.spark.spark_errors import spark_errors
from quotaflow.pipelines.streaming import query_progress
from quotaflow.pipelines.streaming.checkpoints import newest_batch
from quotaflow.pipelines.streaming.listener import BATCH, IDLE, QueryEvent, QueryListener
from quotaflow.pipelines.streaming.sinks import Batch, Count
from quotaflow.pipelines.terminal import logs, texts
from quotaflow.pipelines.terminal.logs import LogLine
from quotaflow.pipelines.warehouse import row_writer
from quotaflow.schemas.tables.declared import CLIENT_METRICS, QUERY_PROGRESS
from quotaflow.udfs.counted import counted, noun

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

WRITE_EVERY_S = 60
_FINAL_PROGRESS_TIMEOUT_S = 10
_MAX_UNWRITTEN = 10_000


class ProgressLog:
    """The query events of one run, taken from the listener on the run's own thread."""

    def __init__(
        self, environment: JobEnvironment, report: Callable[[str], None], listener: QueryListener
    ) -> None:
        self.environment = environment
        self.report = report
        self.listener = listener
        self.jobs: dict[str, Job] = {}
        self.rows: dict[str, int] = {}
        self.running: dict[str, str] = {}
        self.queries: dict[str, StreamingQuery] = {}
        self.reached: dict[str, tuple[int, str]] = {}
        self.unwritten: dict[tuple[str, int | None], query_progress.Row] = {}
        self.written_at = time.monotonic()

    def follow(self, job: Job, query: "StreamingQuery") -> None:
        """Count the events of this start of a query for the job from now on."""
        run_id = str(query.runId)
        self.jobs[run_id] = job
        self.running[job.name] = run_id
        self.queries[run_id] = query
        self.reached[run_id] = newest_batch(self.environment.warehouse.checkpoint(job.name)), ""
        self.rows.setdefault(job.name, 0)

    def take(self) -> None:
        """Record all new events, and append them to query_progress once a minute."""
        while event := self.listener.take():
            self._record(event)
        if self.unwritten and time.monotonic() - self.written_at >= WRITE_EVERY_S:
            self.write()

    def finish(self, job: Job) -> int:
        """Record the final events of a job whose query ended; returns the rows read so far."""
        self._finish(job, time.monotonic() + _FINAL_PROGRESS_TIMEOUT_S)
        return self.rows[job.name]

    def _finish(self, job: Job, deadline: float) -> None:
        while job.name in self.running:
            event = self.listener.take(max(deadline - time.monotonic(), 0))
            if event is None:
                self._read_recent(job)
            else:
                self._record(event)

    def _read_recent(self, job: Job) -> None:
        """Record batches that had no event from the query itself, which keeps its last 100."""
        run_id = self.running.pop(job.name)
        failures: tuple[type[Exception], ...] = (OSError, *spark_errors())
        try:
            recent = self.queries.pop(run_id).recentProgress
        except failures:
            line = "its last batches were not reported, and are not counted"
            self.report(logs.warning(line, job.name))
            return
        for progress in recent:
            self._record(QueryEvent(BATCH, run_id, json.loads(progress.json)))

    def record_idle(self, query: "StreamingQuery") -> None:
        """Record that a query ended without an error and without new rows."""
        now = datetime.now(UTC).isoformat()
        content = {"id": str(query.id), "runId": str(query.runId), "timestamp": now}
        self._record(QueryEvent(IDLE, content["runId"], content))

    def close(self) -> None:
        """Record the final events of queries that were stopped, and write what is left."""
        self.take()
        deadline = time.monotonic() + _FINAL_PROGRESS_TIMEOUT_S
        for job in [self.jobs[run_id] for run_id in self.running.values()]:
            self._finish(job, deadline)
        self.write()

    def write(self) -> None:
        """Append new rows to query_progress; if that fails, jobs go on."""
        self.written_at = time.monotonic()
        if self.listener.lost:
            batches = counted(self.listener.lost, "batch", "batches")
            self.report(logs.warning(f"{batches} came faster than jobs could count"))
            self.listener.lost = 0
        if not self.unwritten:
            return
        table = QUERY_PROGRESS
        rows = pa.Table.from_pylist(list(self.unwritten.values()), schema=table.arrow)
        failures: tuple[type[Exception], ...] = (OSError, JobError, *spark_errors())
        environment = self.environment
        try:
            row_writer.append(lambda: environment.spark, environment.warehouse, table, rows)
        except failures as error:
            self._keep(one_line(error))
            return
        self.unwritten = {}

    def _keep(self, reason: str) -> None:
        """Keep a bounded number of rows that could not be written for the next append."""
        kept = dict(list(self.unwritten.items())[-_MAX_UNWRITTEN:])
        lost = len(self.unwritten) - len(kept)
        self.unwritten = kept
        rows = f"{counted(len(kept) + lost, 'row')}, {lost} permanently"
        self.report(logs.warning(f"query_progress lacks {rows}: {reason[:300]}"))

    def _record(self, event: QueryEvent) -> None:
        job = self.jobs.get(event.run_id)
        # On a shared cluster the session has queries of others too.
        if job is None:
            return
        if event.kind == BATCH:
            self._record_batch(job, event.content)
        elif event.kind == IDLE:
            row = query_progress.of_idle(event.content, job.name, self.environment.cluster_id)
            self.unwritten[row["query_id"], None] = row
        elif self.running.get(job.name) == event.run_id:
            del self.running[job.name], self.queries[event.run_id]

    def _is_new(self, job: Job, progress: Any) -> bool:
        """Whether a batch is not recorded yet; reports batches that were skipped as missing."""
        run_id, at = progress["runId"], (int(progress["batchId"]), str(progress["timestamp"]))
        before = self.reached[run_id]
        if at <= before:
            return False
        self.reached[run_id] = at
        missed = at[0] - before[0] - 1
        if missed > 0:
            batches = counted(missed, "batch was", "batches were")
            is_uncounted = noun(missed, "is not counted", "are not counted")
            self.report(logs.warning(f"{batches} not reported, and {is_uncounted}", job.name))
        return True

    def _record_batch(self, job: Job, progress: Any) -> None:
        if not self._is_new(job, progress):
            return
        row = query_progress.of_batch(progress, job.name, self.environment.cluster_id)
        if not row["input_rows"]:
            row |= {"batch_id": None}
        self.unwritten[row["query_id"], row["batch_id"]] = row
        if row["input_rows"]:
            self.rows[job.name] += row["input_rows"]
            batch_id, rows = row["batch_id"], counted(row["input_rows"], "row")
            line = f"batch {batch_id}, {rows} in {texts.duration(row.get('duration_ms') or 0)}"
            self.report(LogLine(line, job=job.name, batch=batch_id))
            if UNIQUE in (progress.get("observedMetrics") or {}):
                self._append(job, row, progress)

    def _append(self, job: Job, row: query_progress.Row, progress: Any) -> None:
        query_id, batch_id = row["query_id"], int(progress["batchId"])
        batch = Batch(self.environment.warehouse, job.name, query_id, batch_id, "/source")
        pushes = query_progress.input_rows(progress)
        unique = progress["observedMetrics"][UNIQUE]["rows"]
        late = sum(int(op.get("numRowsDroppedByWatermark", 0)) for op in progress["stateOperators"])
        target = CLIENT_METRICS.name
        counts = [
            Count("in", pushes, target),
            Count("left_out", pushes - unique - late, target, "same_push_or_unreadable"),
            Count("late", late, target, "past_max_lateness"),
        ]
        time = datetime.fromisoformat(progress["timestamp"])
        batch.report(lambda: self.environment.spark, counts, row["cluster_id"], time)
