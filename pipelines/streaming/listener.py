"""Hears what streaming queries tell of their batches, and hands it on without holding them up.

Spark calls a listener from the one thread that tells all queries' news, on Connect from one of the
client's: so it touches nothing but a bounded queue, which the run's own thread empties.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import Empty, Full, Queue
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from quotaflow.pipelines.spark.spark_errors import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH, IDLE, ENDED = "batch", "idle", "ended"
_MOST_WAITING = 10_000


@dataclass(frozen=True, slots=True)
class QueryEvent:
    """What one start of a query told: a batch, that nothing new was there, or that it ended."""

    kind: str
    run_id: str
    content: Mapping[str, Any]


class QueryListener(StreamingQueryListener):
    """Keeps the news of every query of a session until they are taken; counts what found no room.

    Spark tells the news of one query in their order, its end last.
    """

    def __init__(self) -> None:
        self._waiting: Queue[QueryEvent] = Queue(_MOST_WAITING)
        self.lost = 0

    def take(self, timeout_s: float = 0) -> QueryEvent | None:
        """The oldest news that nobody took yet; None when none come within `timeout_s`."""
        try:
            return self._waiting.get(timeout_s > 0, timeout_s or None)
        except Empty:
            return None

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  Spark's name
        """Nothing to tell."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  Spark's name
        """A batch is done."""
        progress = json.loads(event.progress.json)
        self._put(QueryEvent(BATCH, progress["runId"], progress))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802  Spark's name
        """Nothing new was there for a while."""
        run_id = str(event.runId)
        content = {"id": str(event.id), "runId": run_id, "timestamp": event.timestamp}
        self._put(QueryEvent(IDLE, run_id, content))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802  Spark's name
        """The query ended, well or not."""
        self._put(QueryEvent(ENDED, str(event.runId), {}))

    def _put(self, event: QueryEvent) -> None:
        try:
            self._waiting.put_nowait(event)
        except Full:
            self.lost += 1


@contextmanager
def listening(spark: "SparkSession") -> Iterator[QueryListener]:
    """A listener that hears all queries of a session."""
    listener = QueryListener()
    spark.streams.addListener(listener)
    try:
        yield listener
    finally:
        # A session that died takes its listeners along.
        with suppress(*spark_errors(), OSError):
            spark.streams.removeListener(listener)
