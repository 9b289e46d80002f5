"""Every table is declared so that it can be filled, clustered and read."""

import re
from importlib.resources import files

import pyarrow as pa
import pytest

from quotaflow.schemas import derived, tables
from quotaflow.schemas.head import HeadError
from quotaflow.schemas.table import sql_type
from quotaflow.schemas.tables import declared
from quotaflow.schemas.tables.catalog import ANSWERS, RESULTS, TABLES

from ..cases import cases

INDEXED_COLUMNS = 32


def test_the_catalog_has_the_tables_of_every_file() -> None:
    alone = {file.name for file in files(tables).iterdir() if file.name.endswith(".table")}
    assert alone == {f"{name}.table" for name in declared.TABLES}
    in_heads = {*ANSWERS, *(head.fills for head in RESULTS.values())}
    assert declared.TABLES.keys() | in_heads == set(TABLES)
    assert not declared.TABLES.keys() & in_heads


@cases(
    ("changes", "message"),
    (
        "an area is none",
        {"area: quotas": "area: quota"},
        "table t: area 'quota' is none of",
    ),
    ("a field is missing", {"time: event_time\n": ""}, "table t: the head has no time"),
    ("a source is below it", {"from requests": "from later"}, "does not read later"),
)
def test_a_wrong_declaration_is_an_error(changes: dict[str, str], message: str) -> None:
    text = (
        "comment: One row per user\narea: quotas\nlevel: admin_api\nkey: user\ntime: event_time\n"
        "columns:\n  # As its view has it.\n  from requests: event_time\n  user STRING: its name\n"
    )
    described = {"requests": {"event_time": declared.REQUESTS.columns[1]}}
    assert derived.declared("t", text, described).column_names == ["event_time", "user"]
    for old, new in changes.items():
        text = text.replace(old, new)
    with pytest.raises(HeadError, match=message):
        derived.declared("t", text, described)


def test_names_are_unique_lower_snake_case() -> None:
    for table in TABLES.values():
        names = table.column_names
        assert len(set(names)) == len(names), table.name
        assert [n for n in (table.name, *names) if not re.fullmatch(r"[a-z][a-z0-9_]*", n)] == []


def test_key_time_and_layout_name_columns() -> None:
    for table in TABLES.values():
        named = {*table.key, table.time, *table.clustering, *table.partitioning}
        assert named <= set(table.column_names), table.name
        assert bool(table.clustering) != bool(table.partitioning), table.name


def test_folders_of_files_have_names_of_ours() -> None:
    """A client chooses no part of a file's name: `kind` is one of four of the result's own."""
    assert {name for table in TABLES.values() for name in table.partitioning} == {
        "event_date",
        "kind",
    }
    assert [table.name for table in TABLES.values() if "kind" in table.partitioning] == [
        "producer_id_rates"
    ]


def test_every_table_knows_its_cluster_and_says_what_it_is() -> None:
    for table in TABLES.values():
        assert "cluster_id" in table.column_names, table.name
        assert all([table.comment, *(column.comment for column in table.columns)]), table.name


def test_statistics_exist_where_files_are_skipped_by_them() -> None:
    for table in TABLES.values():
        leaves = [name for column in table.columns for name in [column.name] * _leaves(column.type)]
        assert {table.time, *table.clustering} <= set(leaves[:INDEXED_COLUMNS]), table.name


def test_every_type_has_a_name_in_sql_and_times_are_utc() -> None:
    for column in (column for table in TABLES.values() for column in table.columns):
        assert sql_type(column.type), column
        assert not pa.types.is_timestamp(column.type) or column.type.tz == "UTC", column


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
