"""What one Spark task runs: rules over some time, each result's rows as Arrow streams."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.schemas.table import BINARY, INT, STRING
from quotaflow.udfs.engine.database import DEFAULT_MEMORY_MB, Database, Selection, opened
from quotaflow.udfs.engine.rule import Batches, Relation, Rule

TASK = "task"
"""The column with the number of the task that a fact belongs to, where Spark passes the facts."""

OUTPUT = pa.schema(
    [
        pa.field("task", INT),
        pa.field("rule", STRING),
        pa.field("rows", BINARY),
        pa.field("error", STRING),
        pa.field("error_type", STRING),
    ]
)
"""A row per batch of a result: an Arrow stream, or the error that replaces the result's rows."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One result over the time of a task: what its rule reads, and which rows are needed."""

    rule: Rule
    selections: Mapping[str, Selection]
    where: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A relation that a task reads from files once: its columns and its rows."""

    relation: str
    columns: tuple[str, ...]
    selection: Selection


@dataclass(frozen=True, slots=True)
class Task:
    """The pieces of one task, which share relations."""

    relations: Mapping[str, Relation]
    pieces: Sequence[Piece]
    kept: Sequence[Kept] = ()


def over_relations(
    tasks: Sequence[Task], memory_mb: int = DEFAULT_MEMORY_MB
) -> Callable[[Batches], Batches]:
    """A function for mapInArrow: numbers of tasks in, OUTPUT out.

    The tasks have all their relations.
    """

    def run(batches: Batches) -> Batches:
        # To the end first: Spark kills a worker that leaves input unread, which costs 1.5 s a task.
        numbers = [number for batch in batches for number in batch.column(0).to_pylist()]
        for number in numbers:
            yield from _run(number, tasks[number], memory_mb)

    return run


def over_rows(
    tasks: Sequence[Task], facts: str, schema: pa.Schema, memory_mb: int = DEFAULT_MEMORY_MB
) -> Callable[[Batches], Batches]:
    """A function for mapInArrow: facts with their TASK in, OUTPUT out.

    All facts of a task must be in one partition. A task without facts is not computed, so its
    result has no rows.
    """

    def run(batches: Batches) -> Batches:
        by_task: dict[int, list[pa.RecordBatch]] = {}
        for batch in batches:
            for number, rows in _split(batch):
                by_task.setdefault(number, []).append(rows)
        for number in sorted(by_task):
            rows = pa.Table.from_batches(by_task.pop(number)).cast(schema)
            task = Task({**tasks[number].relations, facts: rows}, tasks[number].pieces)
            yield from _run(number, task, memory_mb)

    return run


def _split(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    tasks = batch.column(TASK)
    rows = batch.drop_columns([TASK])
    numbers = tasks.unique().to_pylist()
    if len(numbers) == 1:
        yield numbers[0], rows
        return
    for number in numbers:
        yield number, rows.filter(pc.equal(tasks, number))


def _run(number: int, task: Task, memory_mb: int) -> Batches:
    with opened(task.relations, memory_mb, cores()) as database:
        for kept in task.kept:
            # A piece that reads this relation meets the same error; the others do not need it.
            with suppress(duckdb.Error):
                database.keep(kept.relation, kept.columns, kept.selection)
        for piece in task.pieces:
            yield from _piece(number, piece, database)


def _piece(number: int, piece: Piece, database: Database) -> Batches:
    name = piece.rule.name
    try:
        for rows in database.compute(piece.rule, piece.selections, piece.where):
            yield _output(number, name, rows=_as_stream(rows))
    except Exception as error:
        # A walk is Python and may raise any error. One result's error must not end the others: the
        # driver reports it by name, keeps that result as not up to date, and computes it again.
        yield _output(number, name, error=str(error), error_type=type(error).__name__)


def _output(
    number: int,
    rule: str,
    rows: bytes | None = None,
    error: str | None = None,
    error_type: str | None = None,
) -> pa.RecordBatch:
    row = {"task": number, "rule": rule, "rows": rows, "error": error, "error_type": error_type}
    return pa.RecordBatch.from_pylist([row], schema=OUTPUT)


def _as_stream(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    stored: bytes = sink.getvalue().to_pybytes()
    return stored


def cores() -> int:
    """The cores of this task; 1 outside of Spark."""
    from pyspark import TaskContext  # noqa: PLC0415  tests run tasks without Spark

    context = TaskContext.get()
    return context.cpus() if context else 1
