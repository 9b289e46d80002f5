"""Computes answers whose inputs changed, and says which answers are not up to date.

Rows are committed before the state that names their inputs. So after a crash between the two an
answer is computed once more, and its rows are the same. The versions of the inputs are taken before
they are read: rows can be newer than their state says, and never older.
"""

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from datetime import datetime, timedelta
from functools import cache
from graphlib import TopologicalSorter
from itertools import compress

import pyarrow as pa

from quotaflow.pipelines.config import WarehouseSection
from quotaflow.pipelines.errors import JobError
from quotaflow.pipelines.results.answers import answer_state
from quotaflow.pipelines.results.answers.answer import Answer
from quotaflow.pipelines.results.answers.answer_state import AnswerState, Stamps
from quotaflow.pipelines.results.answers.folder import FolderSource
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.results.answers.source import Computed, Source
from quotaflow.pipelines.spark import failures
from quotaflow.pipelines.terminal import logs
from quotaflow.pipelines.warehouse import row_writer
from quotaflow.pipelines.warehouse.python_times import rows_of
from quotaflow.pipelines.warehouse.row_writer import ALL_ROWS
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse
from quotaflow.schemas.table import LONG, Table
from quotaflow.schemas.tables.declared import ANSWER_STATE
from quotaflow.udfs.engine.database import opened

Report = Callable[[str], None]


def refresh(
    section: WarehouseSection,
    open_session: OpenSession,
    now: datetime,
    report: Report,
    answers: Collection[Answer] = ANSWERS,
) -> list[str]:
    """Compute each answer whose inputs changed; returns the names of the tables that changed.

    The caller has the warehouse's lock. Each answer is computed after those it reads. An
    answer whose required inputs do not all exist is left. One that cannot be computed is reported,
    keeps its rows and has its error in `answer_state`; the others go on. A folder needs no session.
    """
    warehouse = Warehouse(section)
    with _opened(warehouse, open_session, now) as source:
        errors: tuple[type[Exception], ...] = (*source.failures, JobError)
        try:
            run = _Refresh(source, warehouse, open_session, now, report)
            changed = run.all(answers)
            run.write_states()
        except errors as error:
            report(logs.warning(f"answers may not be up to date: {failures.one_line(error)}"))
            return []
        return changed


def in_order(answers: Collection[Answer]) -> TopologicalSorter[str]:
    """The names of answers, each after those of them that it reads."""
    names = {answer.name for answer in answers}
    return TopologicalSorter(
        {each.name: sorted(names & {*each.inputs} - {each.name}) for each in answers}
    )


@contextmanager
def _opened(warehouse: Warehouse, open_session: OpenSession, now: datetime) -> Iterator[Source]:
    if not warehouse.conf.catalog_schema:
        with closing(FolderSource(warehouse, now)) as folder:
            yield folder
        return
    from quotaflow.pipelines.results.answers.in_catalog import (  # noqa: PLC0415  needs pyspark
        CatalogSource,
    )

    with closing(CatalogSource(warehouse, now, open_session())) as catalog:
        yield catalog


class _Refresh:
    """One refresh of a warehouse."""

    def __init__(
        self,
        source: Source,
        warehouse: Warehouse,
        open_session: OpenSession,
        now: datetime,
        report: Report,
    ) -> None:
        self.source = source
        self.warehouse = warehouse
        self.open_session = open_session
        self.now = now
        self.report = report
        self.errors: tuple[type[Exception], ...] = (*source.failures, JobError)
        self.states = _states(source)
        self.written = dict(self.states)

    def all(self, answers: Collection[Answer]) -> list[str]:
        """Bring all answers up to date; returns the names of those whose rows are others now."""
        by_name = {answer.name: answer for answer in answers}
        order = in_order(answers)
        order.prepare()
        changed: dict[str, bool] = {}
        running: dict[Future[bool], str] = {}
        pool = ThreadPoolExecutor(self.source.threads, "answers")
        try:
            due = pool.map(self.is_due, answers)
            self.source.prepare(list(compress(answers, due)))
            while order.is_active():
                for name in order.get_ready():
                    running[pool.submit(self.is_changed, by_name[name])] = name
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    name = running.pop(future)
                    changed[name] = future.result()
                    order.done(name)
        finally:
            pool.shutdown(cancel_futures=True)
        return [name for name in by_name if changed[name]]

    def is_due(self, answer: Answer) -> bool:
        """Whether an answer is to be computed, though no other answer changes."""
        with suppress(*self.errors):
            return self._due_stamps(answer) is not None
        return False

    def _due_stamps(self, answer: Answer) -> dict[str, str | None] | None:
        """The stamps of an answer that is to be computed; None for one that is not."""
        stamps = input_stamps(self.source, answer)
        state = self.states.get(answer.name)
        is_whole = all(stamps[name] is not None for name in answer.required)
        is_same = state is not None and state.is_of(answer, stamps, self.now)
        return stamps if is_whole and not is_same else None

    def is_changed(self, answer: Answer) -> bool:
        """Bring one answer up to date; returns whether its rows are others now."""
        stamps: dict[str, str | None] | None = {}
        try:
            stamps = self._due_stamps(answer)
            if stamps is None:
                return False
            computed = self.source.compute(answer)
            is_changed = self._write(answer, computed)
        except self.errors as error:
            self._failed(answer, stamps or {}, failures.one_line(error))
            return False
        self.states[answer.name] = AnswerState(
            answer.name,
            self.now,
            answer.fingerprint,
            {**stamps, answer.name: self.source.stamp(answer.name)},
            computed.expires_at,
        )
        return is_changed

    def write_states(self) -> None:
        """Replace the table of states, if one is another than before."""
        if self.states == self.written:
            return
        self.warehouse.ensure(self.open_session, [ANSWER_STATE])
        self._replace(ANSWER_STATE, answer_state.to_rows(self.states))

    def _write(self, answer: Answer, computed: Computed) -> bool:
        table, state = answer.table, self.states.get(answer.name)
        is_made = self.source.stamp(table.name) is not None
        is_of_release = state is not None and state.was_computed_as(answer)
        # An older release may have made it, without a column.
        if not (is_made and is_of_release):
            self.warehouse.ensure(self.open_session, [table])
        if is_made and _are_same(self.source.rows(table), computed.rows):
            return False
        if computed.rows.num_rows or is_made:
            self._replace(table, computed.rows)
        self.source.changed(table, computed.rows)
        return True

    def _replace(self, table: Table, rows: pa.Table) -> None:
        row_writer.replace(self.open_session, self.warehouse, table, rows, ALL_ROWS)

    def _failed(self, answer: Answer, stamps: Stamps, error: str) -> None:
        self.report(logs.warning(f"{answer.name} is not up to date: {error}"))
        before = self.states.get(answer.name)
        if before is not None and before.error == error and before.inputs == stamps:
            return
        self.states[answer.name] = AnswerState(
            answer.name, self.now, answer.fingerprint, stamps, None, error
        )


def not_up_to_date(
    section: WarehouseSection,
    open_session: OpenSession,
    now: datetime,
    max_age: timedelta,
    names: Collection[str],
) -> dict[str, str]:
    """Answers that must not be relied on, each with the reason.

    These could not be computed, or were computed more than `max_age` ago from inputs that changed
    since; or one that they are computed from was.
    """
    if not names:
        return {}
    by_name = {answer.name: answer for answer in ANSWERS}
    with _opened(Warehouse(section), open_session, now) as source:
        states = _states(source)

        @cache
        def problem(name: str) -> str | None:
            state = states.get(name)
            own = _problem(by_name[name], state, source, now, max_age)
            inputs = state.inputs if state else {}
            made = {table for table, stamp in inputs.items() if stamp is not None}
            read = by_name.keys() & made - {name}
            return own or next(filter(None, map(problem, sorted(read))), None)

        return {name: why for name in sorted(names) if (why := problem(name))}


def _problem(
    answer: Answer, state: AnswerState | None, source: Source, now: datetime, max_age: timedelta
) -> str | None:
    if state is None:
        return f"{answer.name} was never computed: run quotaflow run --once and quotaflow snapshot"
    if state.error is not None:
        return f"{answer.name} is not up to date: {state.error}"
    if now - state.time <= max_age or state.is_of(answer, input_stamps(source, answer), now):
        return None
    return (
        f"{answer.name} was computed at {state.time:%Y-%m-%d %H:%M:%S} UTC, and its inputs changed "
        "since: run quotaflow run first"
    )


def input_stamps(source: Source, answer: Answer) -> dict[str, str | None]:
    """Versions of an answer's table and of what it reads; None: a table does not exist."""
    return {name: source.stamp(name) for name in (answer.name, *answer.inputs)}


def _states(source: Source) -> dict[str, AnswerState]:
    if source.stamp(ANSWER_STATE.name) is None:
        return {}
    return answer_state.from_rows(rows_of(source.rows(ANSWER_STATE)))


_COUNT = pa.schema([("rows", LONG)])
_DIFFERENCE = """
    SELECT count(*) AS rows FROM (
        (SELECT * FROM first EXCEPT ALL SELECT * FROM second)
        UNION ALL
        (SELECT * FROM second EXCEPT ALL SELECT * FROM first)
    ) AS rows_of_one
"""


def _are_same(first: pa.Table, second: pa.Table) -> bool:
    """Whether two tables of one schema have the same rows, in any order."""
    if first.num_rows != second.num_rows:
        return False
    # Most answers stay as they are, also in their order.
    if first.equals(second):
        return True
    with opened({"first": first, "second": second}) as database:
        (count,) = pa.Table.from_batches(database.query(_DIFFERENCE, _COUNT)).to_pylist()
        return bool(count["rows"] == 0)
