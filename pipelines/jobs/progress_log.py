"""What queries tell of their batches: a line for the user, and rows only the query can count.

A job counts its rows itself, in the same batch, but for those a stateful operator keeps from it:
their number comes from the query's progress, appended once per batch however often it is told.
How long a batch took and how far behind it is goes to query_progress, a minute's rows at once: an
append costs as much as a small batch.

News come late on a machine at its limit, and Spark drops some where it cannot keep up: what a query
that ended told nobody it is asked for, and what nobody knows any more is told to be missing.
"""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from quotaflow.pipelines.facts.client_metrics import UNIQUE
from quotaflow.pipelines.jobs.job import Job, JobEnvironment
from quotaflow.pipelines.spark import frames
from quotaflow.pipelines.spark.spark_errors import spark_errors
from quotaflow.pipelines.streaming import query_progress
from quotaflow.pipelines.streaming.checkpoints import newest_batch
from quotaflow.pipelines.streaming.listener import BATCH, IDLE, QueryEvent, QueryListener
from quotaflow.pipelines.streaming.sinks import Batch, Count
from quotaflow.schemas.tables.control import QUERY_PROGRESS
from quotaflow.schemas.tables.telemetry import CLIENT_METRICS

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

WRITE_EVERY_S = 60
_FINAL_PROGRESS_TIMEOUT_S = 10
_MOST_UNWRITTEN = 10_000


class ProgressLog:
    """What the queries of one run told, taken from the listener on the run's own thread."""

    def __init__(
        self, setting: JobEnvironment, report: Callable[[str], None], listener: QueryListener
    ) -> None:
        self.setting = setting
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
        """From now on news of this start of a query are the job's."""
        run_id = str(query.runId)
        self.jobs[run_id] = job
        self.running[job.name] = run_id
        self.queries[run_id] = query
        self.reached[run_id] = newest_batch(self.setting.warehouse.checkpoint(job.name)), ""
        self.rows.setdefault(job.name, 0)

    def take(self) -> None:
        """Tell all that is new, and write it down where that was last done a while ago."""
        while event := self.listener.take():
            self._record(event)
        if self.unwritten and time.monotonic() - self.written_at >= WRITE_EVERY_S:
            self.write()

    def finish(self, job: Job) -> int:
        """Take the last words of a job whose query ended; returns the rows it has read so far."""
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
        """Let a query itself tell what it told nobody yet: it keeps its last 100 batches."""
        run_id = self.running.pop(job.name)
        failures: tuple[type[Exception], ...] = (OSError, *spark_errors())
        try:
            recent = self.queries.pop(run_id).recentProgress
        except failures:
            self.report(f"{job.name}: its last batches were not told, and not counted")
            return
        for progress in recent:
            self._record(QueryEvent(BATCH, run_id, json.loads(progress.json)))

    def record_idle(self, query: "StreamingQuery") -> None:
        """A query has ended well, and nothing new was there."""
        now = datetime.now(UTC).isoformat()
        content = {"id": str(query.id), "runId": str(query.runId), "timestamp": now}
        self._record(QueryEvent(IDLE, content["runId"], content))

    def close(self) -> None:
        """Take the last words of queries that were stopped, and write down what is left."""
        self.take()
        deadline = time.monotonic() + _FINAL_PROGRESS_TIMEOUT_S
        for job in [self.jobs[run_id] for run_id in self.running.values()]:
            self._finish(job, deadline)
        self.write()

    def write(self) -> None:
        """Append to query_progress what is not there yet; jobs go on where that fails."""
        self.written_at = time.monotonic()
        if self.listener.lost:
            self.report(f"{self.listener.lost} batches were told faster than they could be counted")
            self.listener.lost = 0
        if not self.unwritten:
            return
        table = QUERY_PROGRESS
        rows = pa.Table.from_pylist(list(self.unwritten.values()), schema=table.arrow)
        failures: tuple[type[Exception], ...] = (OSError, *spark_errors())
        try:
            frame = frames.from_arrow(self.setting.spark, rows)
            self.setting.warehouse.write(frame.write.format("delta").mode("append"), table.name)
        except failures as error:
            self._keep(str(error).strip().partition("\n")[0])
            return
        self.unwritten = {}

    def _keep(self, reason: str) -> None:
        """Rows that could not be written wait for the next time, but never without bound."""
        kept = dict(list(self.unwritten.items())[-_MOST_UNWRITTEN:])
        lost = len(self.unwritten) - len(kept)
        self.unwritten = kept
        self.report(
            f"query_progress lacks {len(kept) + lost} rows, {lost} of them for good: {reason[:300]}"
        )

    def _record(self, event: QueryEvent) -> None:
        job = self.jobs.get(event.run_id)
        # On a shared cluster others have queries in the same session.
        if job is None:
            return
        if event.kind == BATCH:
            self._record_batch(job, event.content)
        elif event.kind == IDLE:
            row = query_progress.of_idle(event.content, job.name, self.setting.cluster_id)
            self.unwritten[row["query_id"], None] = row
        elif self.running.get(job.name) == event.run_id:
            del self.running[job.name], self.queries[event.run_id]

    def _is_new(self, job: Job, progress: Any) -> bool:
        """Whether a batch was not told yet; batches of a query that were passed over are missed."""
        run_id, at = progress["runId"], (int(progress["batchId"]), str(progress["timestamp"]))
        before = self.reached[run_id]
        if at <= before:
            return False
        self.reached[run_id] = at
        missed = at[0] - before[0] - 1
        if missed > 0:
            self.report(f"{job.name}: {missed} batches were not told, and not counted")
        return True

    def _record_batch(self, job: Job, progress: Any) -> None:
        if not self._is_new(job, progress):
            return
        row = query_progress.of_batch(progress, job.name, self.setting.cluster_id)
        if not row["input_rows"]:
            row |= {"batch_id": None}
        self.unwritten[row["query_id"], row["batch_id"]] = row
        if row["input_rows"]:
            self.rows[job.name] += row["input_rows"]
            took_s = (row.get("duration_ms") or 0) / 1_000
            did = f"batch {row['batch_id']}, {row['input_rows']} rows in {took_s:.1f} s"
            self.report(f"{job.name}: {did}")
            if UNIQUE in (progress.get("observedMetrics") or {}):
                self._append(job, row, progress)

    def _append(self, job: Job, row: query_progress.Row, progress: Any) -> None:
        query_id, batch_id = row["query_id"], int(progress["batchId"])
        batch = Batch(self.setting.warehouse, job.name, query_id, batch_id, "/source")
        pushes = query_progress.came(progress)
        unique = progress["observedMetrics"][UNIQUE]["rows"]
        late = sum(int(op.get("numRowsDroppedByWatermark", 0)) for op in progress["stateOperators"])
        target = CLIENT_METRICS.name
        counts = [
            Count("in", pushes, target),
            Count("left_out", pushes - unique - late, target, "same_push_or_unreadable"),
            Count("late", late, target, "past_max_lateness"),
        ]
        time = datetime.fromisoformat(progress["timestamp"])
        batch.report(self.setting.spark, counts, row["cluster_id"], time)
