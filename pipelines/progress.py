"""What queries report of their batches: a line for the user, and rows only the query can count.

A job counts its rows itself, in the same batch, but for those a stateful operator keeps from it:
their number comes from the query's progress, appended once per batch however often it is seen.
"""

from collections.abc import Callable
from datetime import datetime
from math import ceil
from typing import TYPE_CHECKING, Any

from quotaflow.pipelines.facts.client_metrics import UNIQUE
from quotaflow.pipelines.job import Job, Setting
from quotaflow.pipelines.sinks import Batch, Count
from quotaflow.schemas import tables

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


class ProgressLog:
    """Which batches of which queries were already told."""

    def __init__(self, setting: Setting, report: Callable[[str], None]) -> None:
        self.setting = setting
        self.report = report
        self.told: dict[str, int] = {}
        self.rows: dict[str, int] = {}

    def take(self, job: Job, query: "StreamingQuery") -> int:
        """Tell every new batch of a query; returns the rows the query has read so far."""
        scans = job.scans(self.setting.conf)
        for progress in query.recentProgress:
            batch_id, query_id = int(progress["batchId"]), str(progress["id"])
            # A scan may skip what its result needs not: something that came is never nothing.
            rows = ceil(progress["numInputRows"] / scans)
            if batch_id <= self.told.get(query_id, -1) or not rows:
                continue
            self.told[query_id] = batch_id
            self.rows[query_id] = self.rows.get(query_id, 0) + rows
            self.report(_line(job, progress, rows))
            if UNIQUE in progress["observedMetrics"]:
                self._append(job, query_id, progress)
        return self.rows.get(str(query.id), 0)

    def _append(self, job: Job, query_id: str, progress: Any) -> None:
        batch_id = int(progress["batchId"])
        batch = Batch(self.setting.warehouse, job.name, query_id, batch_id, "/source")
        observed = progress["observedMetrics"]
        pushes, unique = int(progress["numInputRows"]), observed[UNIQUE]["rows"]
        late = sum(int(op.get("numRowsDroppedByWatermark", 0)) for op in progress["stateOperators"])
        target = tables.CLIENT_METRICS.name
        counts = [
            Count("in", pushes, target),
            Count("left_out", pushes - unique - late, target, "same_push_or_unreadable"),
            Count("late", late, target, "past_max_lateness"),
        ]
        time = datetime.fromisoformat(progress["timestamp"])
        batch.report(self.setting.spark, counts, self.setting.cluster_id, time)


def _line(job: Job, progress: Any, rows: int) -> str:
    took_s = progress["durationMs"].get("triggerExecution", 0) / 1_000
    return f"{job.name}: batch {progress['batchId']}, {rows} rows in {took_s:.1f} s"
