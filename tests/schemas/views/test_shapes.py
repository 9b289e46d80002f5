"""Ordinary queries of every view: each answers what the view's whole rows say."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.terminal import values
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.sql_dialects import in_duckdb
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from .filled_views import FILLED
from .memory_tables import MemoryTables
from .view_tables import make_tables, make_tables_and_answers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Cells = Counter[tuple[str, ...]]
_FILTERED = 3
_ONE_OF = 24


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Tables with rows for every view."""
    folder = tmp_path_factory.mktemp("filled")
    warehouse = Warehouse(config.WarehouseSection(path=str(folder)))
    make_tables_and_answers(warehouse, FILLED)
    return warehouse


@pytest.fixture(scope="module")
def reader(filled: Warehouse) -> FolderReader:
    return FolderReader(filled)


@cache
def in_memory_tables() -> MemoryTables:
    tables = MemoryTables()
    make_tables(tables, FILLED)
    return tables


VIEWS = pytest.mark.parametrize(
    "name",
    [
        # Of most views only make faults runs these queries.
        pytest.param(name, marks=[] if number % _ONE_OF == 0 else pytest.mark.faults)
        for number, name in enumerate(views.load())
    ],
)


def shapes(name: str, rows: list[dict[str, Any]]) -> Iterator[tuple[str, Cells]]:
    """Queries in Spark's SQL, each with its answer by the rows of the view."""
    yield f"SELECT count(*) AS n FROM {name}", Counter([(str(len(rows)),)])
    yield (
        f"WITH x AS (SELECT * FROM {name}) SELECT count(*) AS n FROM x",
        Counter([(str(len(rows)),)]),
    )
    key = _key(rows)
    groups = Counter(row[key] for row in rows)
    yield f"SELECT DISTINCT {key} FROM {name}", Counter((_cell(each),) for each in groups)
    grouped = Counter((_cell(each), str(n)) for each, n in groups.items())
    yield f"SELECT {key}, count(*) AS n FROM {name} GROUP BY {key}", grouped
    yield joined(name, rows)
    for column in rows[0]:
        cells = Counter((_cell(row[column]),) for row in rows)
        yield f"SELECT {column} FROM {name}", cells
    for column in _texts(rows)[:_FILTERED]:
        value = next(row[column] for row in rows if row[column])
        yield filtered(name, rows, {column: value})


def joined(name: str, rows: list[dict[str, Any]]) -> tuple[str, Cells]:
    """The view with itself."""
    key = _key(rows)
    groups = Counter(row[key] for row in rows)
    pairs = sum(n * n for value, n in groups.items() if value is not None)
    both = f"FROM {name} AS a INNER JOIN {name} AS b ON a.{key} = b.{key}"
    return f"SELECT count(*) AS n {both}", Counter([(str(pairs),)])


def filtered(name: str, rows: list[dict[str, Any]], texts: dict[str, str]) -> tuple[str, Cells]:
    """The rows that have these texts."""
    where = " AND ".join(f"{column} = {literal(value)}" for column, value in texts.items())
    equal = sum(row.items() >= texts.items() for row in rows)
    return f"SELECT count(*) AS n FROM {name} WHERE {where or 'true'}", Counter([(str(equal),)])


def _key(rows: list[dict[str, Any]]) -> str:
    return "cluster_id" if "cluster_id" in rows[0] else _texts(rows)[-1]


def _texts(rows: list[dict[str, Any]]) -> list[str]:
    """Columns of text, the last ones first: `cluster_id` is the first of nearly all."""
    types = {name: value for row in rows for name, value in row.items() if value is not None}
    is_time = re.compile(r"\d{4}-\d\d-\d\dT")
    return [
        name
        for name, value in reversed(types.items())
        if isinstance(value, str) and value and not is_time.match(value)
    ]


def _cell(value: Any) -> str:
    return values.json_line({"": value})


def cells_of(rows: list[dict[str, Any]]) -> Cells:
    """The cells of an answer; a count as plain text."""
    return Counter(
        tuple(str(cell) if name == "n" else _cell(cell) for name, cell in row.items())
        for row in rows
    )


@VIEWS
def test_any_part_of_a_view_is_that_part_of_its_rows(reader: FolderReader, name: str) -> None:
    rows = list(values.rows(reader.query(f"SELECT * FROM {name}")))
    assert rows != []
    for sql, expected in shapes(name, rows):
        assert cells_of(list(values.rows(reader.query(in_duckdb(sql))))) == expected, sql


@VIEWS
def test_tables_in_memory_give_the_same_rows(reader: FolderReader, name: str) -> None:
    sql = f"SELECT * FROM {name}"
    in_memory = in_memory_tables().read(sql)
    in_folder = reader.query(sql).read_all()
    assert in_memory.schema.names == in_folder.schema.names
    of_both = (values.rows(table.to_batches()) for table in (in_memory, in_folder))
    assert len({frozenset(Counter(map(_cell, rows)).items()) for rows in of_both}) == 1


@pytest.mark.spark
@pytest.mark.faults
@pytest.mark.timeout(3_600)
def test_the_same_in_spark(filled: Warehouse, reader: FolderReader, spark: "SparkSession") -> None:
    for name in TABLES:
        filled.read(spark, name).createOrReplaceTempView(name)
    for name, view in views.load().items():
        table = reader.query(f"SELECT * FROM {name}").read_all()
        rows = list(values.rows(table.to_batches()))
        spark.sql(view.sql).createOrReplaceTempView(f"{name}_planned")
        # Views that read this one read its rows: planned again in each, deep ones take minutes.
        spark.createDataFrame(table).createOrReplaceTempView(name)
        # Spark takes a second for each query, and test_alike.py compares all columns.
        texts = {column: rows[0][column] for column in _texts(rows) if rows[0][column]}
        for shape in (joined, partial(filtered, texts=texts)):
            sql, expected = shape(f"{name}_planned", rows)
            batches = spark.sql(sql).toArrow().to_reader()
            assert cells_of(list(values.rows(batches))) == expected, sql
