"""What an assistant may ask: each question reads tables, and none changes anything."""

import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from operator import methodcaller
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from quotaflow.pipelines.areas import diagnoses
from quotaflow.pipelines.areas.about import Period
from quotaflow.pipelines.areas.why import WhyAnswer
from quotaflow.pipelines.areas.why import why as ask
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import NeverMadeError, QuotaflowError
from quotaflow.pipelines.feedback.planning import plan_text, planning
from quotaflow.pipelines.feedback.runs import context
from quotaflow.pipelines.jobs import fillers
from quotaflow.pipelines.reference import catalogue, search
from quotaflow.pipelines.serve import untrusted
from quotaflow.pipelines.terminal import times
from quotaflow.pipelines.warehouse import browsing, query_process
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.readers import open_reader

if TYPE_CHECKING:
    import pyarrow as pa

Answer = dict[str, Any]
_WAIT_S, _LOOK_S = 30, 0.2

Name = Annotated[
    str,
    Field(
        description="A principal, client id or app-* for several, group, topic, address, broker-1."
    ),
]
Lookback = Annotated[str, Field(description="How far back from the end: 5m, 1h, 1d.")]
At = Annotated[str, Field(description=f"End, as {times.FORMS}; empty: the newest window.")]
Every = Annotated[bool, Field(description="Also what every area found, not the verdict alone.")]
Table = Annotated[str, Field(description="A table or view, as the tool tables lists them.")]
Words = Annotated[str, Field(description="Words that a name or meaning must have; empty: all.")]
Where = Annotated[str, Field(description="DuckDB's SQL: rows for which it is true; empty: all.")]
Since = Annotated[str, Field(description=f"From {times.FORMS}; empty: all time.")]
Limit = Annotated[int, Field(ge=1, le=untrusted.MAX_ROWS, description="At most so many rows.")]
Query = Annotated[str, Field(description="One query in DuckDB's SQL over tables and views.")]


class NoAnswerError(Exception):
    """A question that has no answer; the message is bounded and escaped."""


class Call:
    """One question, which another thread may stop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: list[Callable[[], None]] = []
        self.is_stopped = False

    def begins(self, end: Callable[[], None]) -> None:
        """Something begins for the question that `end` stops."""
        with self._lock:
            self._ends.append(end)
            is_stopped = self.is_stopped
        if is_stopped:
            end()

    def stop(self) -> None:
        """End what has begun, and all that begins later."""
        with self._lock:
            self.is_stopped = True
            ends = [*self._ends]
        for end in ends:
            end()


CALL: ContextVar[Call | None] = ContextVar("call", default=None)
"""The question that this thread answers."""


@dataclass
class Tools:
    """The questions over the tables of one conf. One is answered at a time."""

    conf: Conf
    _asking: threading.Lock = field(default_factory=threading.Lock)

    def why(
        self, name: Name, lookback: Lookback = "5m", at: At = "", every: Every = False
    ) -> Answer:
        """Say what is wrong with a client, group, topic or broker, why, and what to do.

        The first lines are the verdict: since when, what requests wait for, causes, a next step.
        """

        def reply(reader: Reader) -> Answer:
            until = times.since(at, datetime.now(UTC), "at") if at else None
            period = Period(until, timedelta(seconds=times.seconds(lookback)))
            answered = ask(reader, name, period, self.conf.kafka.cluster_id, self.conf)
            lines = [*answered.verdict.lines(answered.subject.name)]
            findings = _findings(answered) if every else ()
            return untrusted.answer([*lines, *answered.damages, *findings])

        return self._answered(reply)

    def incidents(self) -> Answer:
        """List what goes wrong in the cluster now: who suffers, since when, the cause, who else."""

        def reply(reader: Reader) -> Answer:
            rows = reader.rows(diagnoses.open_incidents(untrusted.MAX_ROWS))
            return untrusted.answer({"text": diagnoses.incident(row)} | row for row in rows)

        return self._answered(reply)

    def tables(self, words: Words = "") -> Answer:
        """List tables and views with the question that each answers, or search their columns."""

        def reply(reader: Reader) -> Answer:
            if words.split():
                return untrusted.answer(hit.row() for hit in search.search(words.split()))
            names = ("name", "area", "rows", "question")
            rows = catalogue.extents(reader, every=False)
            return untrusted.answer({each: row[each] for each in names} for row in rows)

        return self._answered(reply)

    def describe(self, table: Table) -> Answer:
        """Say what a row of a table or view is, and the type and meaning of each column."""

        def reply(reader: Reader) -> Answer:
            return untrusted.answer(catalogue.columns(reader, catalogue.checked_name(table)))

        return self._answered(reply)

    def show(self, table: Table, since: Since = "", where: Where = "", limit: Limit = 20) -> Answer:
        """Show rows of a table or view, newest first, or the worst first where that helps more."""

        def reply(reader: Reader) -> Answer:
            name = catalogue.checked_name(table)
            start = times.since(since, datetime.now(UTC)) if since else None
            columns = browsing.columns(reader, name)
            query = browsing.select(name, columns, start, where or None, limit + 1)
            return untrusted.answer(browsing.rows(self._batches(query), query), limit)

        return self._answered(reply)

    def sql(self, query: Query, limit: Limit = 50) -> Answer:
        """Answer one SQL query over tables and views. It cannot change anything.

        Conf bounds its memory and time. Look columns up by describe first.
        """
        return self._answered(
            lambda _: untrusted.answer(browsing.rows(self._batches(query), query), limit)
        )

    def plan(self) -> Answer:
        """Show which configs should change and why, and which changes are blocked, and why.

        Nothing is written: a person applies a plan by `quotaflow apply`.
        """

        def reply(_: Reader) -> Answer:
            opened = context.from_conf(self.conf)
            _call().begins(opened.tables.stop)
            made = planning.make(opened.plans, opened.tables, datetime.now(UTC))
            return untrusted.answer(plan_text.plan_objects(made))

        return self._answered(reply)

    def _batches(self, query: str) -> "pa.RecordBatchReader":
        """The rows of a query of an assistant, from a process that is bounded as that of `sql`."""
        return query_process.batches(self.conf, methodcaller("query", query), _call().begins)

    def _answered(self, reply: Callable[[Reader], Answer]) -> Answer:
        """The answer over the tables as they are now. Raises NoAnswerError."""
        call, deadline = _call(), time.monotonic() + _WAIT_S
        while not self._asking.acquire(timeout=_LOOK_S):
            if call.is_stopped or time.monotonic() > deadline:
                raise NoAnswerError("another question is being answered: ask again")
        try:
            reader = open_reader(self.conf)
            call.begins(reader.stop)
            return reply(reader)
        except NeverMadeError as error:
            raise NoAnswerError(_shown(f"{error}: {fillers.hint(error.table)}")) from None
        except QuotaflowError as error:
            raise NoAnswerError(_shown(str(error))) from None
        finally:
            self._asking.release()


def _call() -> Call:
    return CALL.get() or Call()


def _findings(answered: WhyAnswer) -> Iterator[Answer]:
    names = ("state", "code", "severity", "text", "next_step", "evidence_table")
    for area in answered.areas:
        for finding in area.findings:
            yield {"area": area.name} | {name: getattr(finding, name) for name in names}


def _shown(message: str) -> str:
    return untrusted.text(message, 2 * untrusted.MAX_CHARS)
