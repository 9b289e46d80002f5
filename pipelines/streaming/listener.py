"""Receives the events of streaming queries, and passes them on without slowing the queries down.

Spark calls a listener from the one thread that reports the events of all queries, on Connect from a
thread of the client. So the listener only puts events into a bounded queue, which the run's own
thread empties.
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
_MAX_WAITING = 10_000


@dataclass(frozen=True, slots=True)
class QueryEvent:
    """One event of one start of a query: a batch, no new rows (idle), or the end."""

    kind: str
    run_id: str
    content: Mapping[str, Any]


class QueryListener(StreamingQueryListener):
    """Keeps the events of all queries of a session until they are taken; counts dropped events.

    Spark reports the events of one query in order, its end last.
    """

    def __init__(self) -> None:
        self._waiting: Queue[QueryEvent] = Queue(_MAX_WAITING)
        self.lost = 0

    def take(self, timeout_s: float = 0) -> QueryEvent | None:
        """The oldest event that is not taken yet; None if there is none within `timeout_s`."""
        try:
            return self._waiting.get(timeout_s > 0, timeout_s or None)
        except Empty:
            return None

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  Spark's name
        """Do nothing."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  Spark's name
        """Keep the progress of a batch."""
        progress = json.loads(event.progress.json)
        self._put(QueryEvent(BATCH, progress["runId"], progress))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802  Spark's name
        """Keep the event that a query found no new rows for a while."""
        run_id = str(event.runId)
        content = {"id": str(event.id), "runId": run_id, "timestamp": event.timestamp}
        self._put(QueryEvent(IDLE, run_id, content))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802  Spark's name
        """Keep the end of a query, with or without an error."""
        self._put(QueryEvent(ENDED, str(event.runId), {}))

    def _put(self, event: QueryEvent) -> None:
        try:
            self._waiting.put_nowait(event)
        except Full:
            self.lost += 1


@contextmanager
def listening(spark: "SparkSession") -> Iterator[QueryListener]:
    """A listener for all queries of a session."""
    listener = QueryListener()
    spark.streams.addListener(listener)
    try:
        yield listener
    finally:
        # If the session died, its listeners are gone too.
        with suppress(*spark_errors(), OSError):
            spark.streams.removeListener(listener)
