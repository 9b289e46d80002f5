"""Tables of a warehouse with the rows of a test, and what a query says of them, without a JVM."""

import atexit
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import write_deltalake

from quotaflow.pipelines import config
from quotaflow.pipelines.results.answers.answer_state import AnswerState
from quotaflow.pipelines.results.answers.folder import FolderSource
from quotaflow.pipelines.results.answers.refresh import input_stamps, refresh
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.results.declared import result_of
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.engine_errors import engine_errors
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import ANSWER_STATE

from ...rows import Row
from ...rule_rows import compute
from .memory_tables import MemoryTables, answers_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tables = dict[str, list[Row]]
"""Rows by table."""
Picked = list[tuple[Any, ...]]
"""Some columns of each row."""
_ANSWERS = {answer.name: answer for answer in ANSWERS}
_MADE: dict[str, Path] = {}
"""Folders with answers, by the rows that they were made of."""


def rows(warehouse: Warehouse | MemoryTables, sql: str) -> list[Row]:
    """The rows without a JVM, after the answers that they are computed from."""
    if isinstance(warehouse, MemoryTables):
        return warehouse.rows(sql)
    make_answers(warehouse, sql)
    return answered(FolderReader(warehouse), sql)


def answered(reader: FolderReader, sql: str) -> list[Row]:
    """The rows of the tables as they are."""
    with engine_errors(sql):
        return [dict(row) for row in reader.query(sql).read_all().to_pylist()]


def served(requests: list[Row]) -> Tables:
    """Requests that brokers logged, and the result about their times."""
    times = compute(result_of("request_times"), requests=requests)
    return {"requests": requests, "request_times": times}


def view(name: str, content: Tables) -> list[Row]:
    """Rows of a view or an answer over tables with these rows; the others are empty.

    Behind the name, WHERE and ORDER BY may stand.
    """
    tables = MemoryTables()
    make_tables(tables, content)
    return tables.rows(f"SELECT * FROM {name}")


def picked(actual: list[Row], *names: str) -> list[tuple[Any, ...]]:
    """Some columns of each row."""
    return [tuple(row[name] for name in names) for row in actual]


def signals(row: Row) -> dict[str, float | None]:
    """The numbers of a proposal's evidence."""
    return {each["signal"]: each["value"] for each in row["evidence"]}


def by_case(cases: Mapping[str, dict[str, list[Row]]], sql: str) -> dict[str, list[Row]]:
    """Rows of a query over each case, the content of its tables: a query is planned once for all.

    Each case is a cluster of its own, so that one that reaches into another's shows too.
    """
    content = defaultdict[str, list[Row]](list)
    for case, given in cases.items():
        for table, lines in given.items():
            content[table] += [row | {"cluster_id": case} for row in lines]
    tables = MemoryTables()
    make_tables(tables, content)
    actual: dict[str, list[Row]] = {case: [] for case in cases}
    for row in tables.rows(sql):
        actual[row["cluster_id"]].append(row)
    return actual


def assert_shown(
    cases: Mapping[str, tuple[Tables, Picked]], name: str, *columns: str
) -> dict[str, list[Row]]:
    """Assert these columns of a view, as `view` names it, in each case. Returns its rows."""
    content = {case: tables for case, (tables, _) in cases.items()}
    actual = by_case(content, f"SELECT * FROM {name}")
    shown = {case: picked(rows_of_case, *columns) for case, rows_of_case in actual.items()}
    wrong = {
        case: f"{shown[case]}, not {expected}"
        for case, (_, expected) in cases.items()
        if shown[case] != expected
    }
    assert not wrong, wrong
    return actual


def assert_outcomes(
    outcomes: Mapping[tuple[Any, ...], Mapping[str, Tables]], name: str, *columns: str
) -> dict[str, list[Row]]:
    """The same of cases by the one row that all of them show; () is that of none."""
    given = [
        (case, (tables, [row] if row else []))
        for row, alike in outcomes.items()
        for case, tables in alike.items()
    ]
    cases: dict[str, tuple[Tables, Picked]] = dict(given)
    assert len(cases) == len(given), "a name stands twice"
    return assert_shown(cases, name, *columns)


def in_table(
    table: str, outcomes: Mapping[tuple[Any, ...], Mapping[str, list[Row]]], **others: list[Row]
) -> dict[tuple[Any, ...], dict[str, Tables]]:
    """Cases that differ in the rows of one table, for `assert_outcomes`."""
    return {
        row: {case: others | {table: rows} for case, rows in alike.items()}
        for row, alike in outcomes.items()
    }


def make_answers(warehouse: Warehouse, sql: str) -> None:
    """Compute the answers that a query reads, from the tables as they are. None may fail."""
    needed = answers_for(views.dependencies(sql)[0])
    problems: list[str] = []
    due = [answer for answer in ANSWERS if answer.name in needed]
    refresh(warehouse.conf, no_session, datetime.now(UTC), problems.append, due)
    assert problems == []


def make_tables_and_answers(warehouse: Warehouse, content: dict[str, list[Row]]) -> None:
    """The same with all answers, for tests of commands.

    In a new folder they are a copy of what was made of equal rows before.
    """
    folder = warehouse.conf.folder
    if folder.exists() and any(folder.iterdir()):
        _make_with_answers(warehouse, content)
        return
    key = repr(sorted(content.items()))
    if key not in _MADE:
        _MADE[key] = temporary_folder()
        made = Warehouse(config.WarehouseSection(path=str(_MADE[key])))
        _make_with_answers(made, content)
    shutil.copytree(_MADE[key], folder, dirs_exist_ok=True)


def _make_with_answers(warehouse: Warehouse, content: dict[str, list[Row]]) -> None:
    make_tables(warehouse, content)
    make_answers(warehouse, " ".join(_ANSWERS))


def no_session() -> "SparkSession":
    """In a folder nothing needs a session."""
    raise AssertionError("a session was opened")


def make_tables(warehouse: Warehouse | MemoryTables, content: dict[str, list[Row]]) -> None:
    """Every table, with the comments that jobs give columns, holding these rows.

    Answers are those of empty tables, so that only what reads these rows is computed again.
    """
    if isinstance(warehouse, MemoryTables):
        for name, given in content.items():
            warehouse.put(name, given)
        return
    _make(warehouse, content, _empty_answers())


def make_inputs(warehouse: Warehouse, content: dict[str, list[Row]]) -> None:
    """The same without answers."""
    _make(warehouse, content, _empty_tables())


def _make(warehouse: Warehouse, content: dict[str, list[Row]], empty: Path) -> None:
    assert content.keys() <= TABLES.keys()
    shutil.copytree(empty, warehouse.conf.folder, dirs_exist_ok=True)
    for name, given in content.items():
        make_table(warehouse, TABLES[name], given)


@cache
def _empty_tables() -> Path:
    """A folder of all tables without rows: to copy it takes a thirtieth of making them anew."""
    folder = temporary_folder()
    for table in TABLES.values():
        if table.name not in {*_ANSWERS, ANSWER_STATE.name}:
            make_table(Warehouse(config.WarehouseSection(path=str(folder))), table, [])
    return folder


@cache
def _empty_answers() -> Path:
    """The same with answers, which have no rows where no table has any.

    Their states are written here: to compute that much nothing takes five seconds a process.
    """
    folder = temporary_folder()
    warehouse = Warehouse(config.WarehouseSection(path=str(folder)))
    make_inputs(warehouse, {})
    for answer in ANSWERS:
        make_table(warehouse, answer.table, [])
    now = datetime.now(UTC)
    with closing(FolderSource(warehouse, now)) as source:
        states = [
            AnswerState(each.name, now, each.fingerprint, input_stamps(source, each))
            for each in ANSWERS
        ]
    make_table(warehouse, ANSWER_STATE, [state.row() for state in states])
    return folder


def temporary_folder() -> Path:
    """A folder that is removed when Python ends."""
    folder = Path(tempfile.mkdtemp(prefix="quotaflow-empty-"))
    atexit.register(shutil.rmtree, folder)
    return folder


def make_table(warehouse: Warehouse | MemoryTables, table: Table, content: list[Row]) -> None:
    """One table alone, whatever it held before."""
    if isinstance(warehouse, MemoryTables):
        warehouse.put(table.name, content)
        return
    described = pa.schema(
        pa.field(column.name, column.type, metadata={"comment": column.comment})
        for column in table.columns
    )
    arrow = pa.Table.from_pylist(content, schema=described)
    partitions = list(table.partitioning) or None
    folder = warehouse.folder(table.name)
    write_deltalake(folder, arrow, partition_by=partitions, mode="overwrite")
