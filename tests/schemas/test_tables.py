"""Every table is declared so that it can be filled, clustered and read."""

import pkgutil
import re
from importlib import import_module

import pyarrow as pa
import pytest

from quotaflow.schemas import tables
from quotaflow.schemas.table import Table, sql_type
from quotaflow.schemas.tables.catalog import ANSWERS, RESULTS, TABLES

from ..cases import cases

each_table = pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
INDEXED_COLUMNS = 32


def test_the_catalog_has_the_tables_of_every_module() -> None:
    names = pkgutil.walk_packages(tables.__path__, f"{tables.__name__}.")
    modules = [import_module(module.name) for module in names]
    declared = {t.name for module in modules for t in vars(module).values() if isinstance(t, Table)}
    in_heads = {*ANSWERS, *(head.fills for head in RESULTS.values())}
    assert declared | in_heads == set(TABLES)
    assert not declared & in_heads


@each_table
def test_names_are_unique_lower_snake_case(table: Table) -> None:
    names = table.column_names
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in [table.name, *names])


@each_table
def test_key_time_and_layout_name_columns(table: Table) -> None:
    named = {*table.key, table.time, *table.clustering, *table.partitioning}
    assert named <= set(table.column_names)


@each_table
def test_a_table_is_clustered_or_partitioned(table: Table) -> None:
    assert bool(table.clustering) != bool(table.partitioning)


@each_table
def test_every_table_knows_its_cluster_and_says_what_it_is(table: Table) -> None:
    assert "cluster_id" in table.column_names
    assert table.comment
    assert all(column.comment for column in table.columns)


@each_table
def test_statistics_exist_where_files_are_skipped_by_them(table: Table) -> None:
    leaves = [name for column in table.columns for name in [column.name] * _leaves(column.type)]
    assert {table.time, *table.clustering} <= set(leaves[:INDEXED_COLUMNS])


@each_table
def test_every_type_has_a_name_in_sql(table: Table) -> None:
    assert all(sql_type(column.type) for column in table.columns)


@each_table
def test_times_are_utc_and_booleans_read_as_such(table: Table) -> None:
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            assert column.type.tz == "UTC"


@cases(
    ("arrow", "text"),
    ("array", pa.list_(pa.string()), "ARRAY<STRING>"),
    ("map", pa.map_(pa.string(), pa.int64()), "MAP<STRING, BIGINT>"),
    (
        "nested",
        pa.list_(pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.list_(pa.float64()))])),
        "ARRAY<STRUCT<a: INT, b: ARRAY<DOUBLE>>>",
    ),
)
def test_nested_types_are_spelled_as_spark_does(arrow: pa.DataType, text: str) -> None:
    assert sql_type(arrow) == text


def test_a_type_without_a_name_is_an_error() -> None:
    with pytest.raises(KeyError):
        sql_type(pa.float16())


def _leaves(type_: pa.DataType) -> int:
    return sum(_leaves(field.type) for field in type_) if pa.types.is_struct(type_) else 1
