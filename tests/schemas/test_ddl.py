"""CREATE text of tables and views, and what a live table lacks."""

from dataclasses import replace

import pyarrow as pa
import pytest

from quotaflow.schemas import ddl
from quotaflow.schemas.migrations import SCHEMA_VERSION
from quotaflow.schemas.table import INT, STRING, TIMESTAMP, Column, Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.view import View, ViewColumn

from ..cases import cases

TABLE = Table(
    name="t",
    comment="it's \\ a table",
    columns=(
        Column("a", STRING, "it's"),
        Column("b", INT, "a count"),
        Column("at", TIMESTAMP, "when"),
    ),
    key=("a",),
    time="at",
    clustering=("at", "a"),
)


def test_create_says_columns_layout_and_that_any_client_can_read() -> None:
    assert ddl.create(TABLE, "x.t") == (
        "CREATE TABLE IF NOT EXISTS x.t (\n"
        "  `a` STRING COMMENT 'it\\'s',\n"
        "  `b` INT COMMENT 'a count',\n"
        "  `at` TIMESTAMP COMMENT 'when'\n"
        ")\nUSING delta\nCOMMENT 'it\\'s \\\\ a table'\nCLUSTER BY (at, a)\n"
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'false', "
        "'delta.checkpointPolicy' = 'classic', "
        f"'quotaflow.schema_version' = '{SCHEMA_VERSION}', "
        "'delta.dataSkippingStatsColumns' = 'a,at')"
    )


def test_create_view_says_what_a_row_and_each_column_is() -> None:
    view = View(
        name="v",
        kind="mart",
        grain="one row per t",
        description="It's a view.",
        columns=(ViewColumn("a", "it's"), ViewColumn("total", "a \\ sum")),
        sql="SELECT a, sum(b) AS total FROM t GROUP BY a",
        area="cluster",
        level="admin_api",
    )
    assert ddl.create_view(view) == (
        "CREATE OR REPLACE VIEW v (\n"
        "  `a` COMMENT 'it\\'s',\n"
        "  `total` COMMENT 'a \\\\ sum'\n"
        ")\nCOMMENT 'One row per t. It\\'s a view. Needs the Admin API alone.'\nAS\n"
        "SELECT a, sum(b) AS total FROM t GROUP BY a"
    )


def test_a_result_is_partitioned_and_not_clustered() -> None:
    text = ddl.create(TABLES["producer_id_rates"], "t")
    assert "PARTITIONED BY (event_date, kind)" in text
    assert "CLUSTER BY" not in text


def test_a_column_a_live_table_lacks_is_added() -> None:
    change = ddl.difference(TABLE, "t", {"a": "string", "at": "timestamp", "more": "int"})
    assert change == "ALTER TABLE t ADD COLUMNS (`b` INT COMMENT 'a count')"


PARTS = pa.list_(pa.struct([pa.field("a", INT), pa.field("c", STRING)]))
NESTED = replace(TABLE, columns=(Column("parts", PARTS, "parts"),))


@cases(
    ("live", "expected"),
    (
        "a field is missing",
        "array<struct<a:int>>",
        "ALTER TABLE t ADD COLUMNS (`parts`.element.`c` STRING)",
    ),
    ("an old field stays", "array<struct<a:int,b:int,c:string>>", None),
)
def test_a_list_of_structs_gets_the_fields_it_lacks(live: str, expected: str | None) -> None:
    assert ddl.difference(NESTED, "t", {"parts": live}) == expected


@pytest.mark.parametrize(
    "live", ["array<struct<a:string>>", "array<struct<a:int,c:int>>", "array<int>", "string"]
)
def test_a_list_of_structs_of_other_types_is_refused(live: str) -> None:
    with pytest.raises(ddl.IncompatibleTableError, match="rebuild"):
        ddl.difference(NESTED, "t", {"parts": live})


@pytest.mark.parametrize(
    "live", ["array<struct<b:int,a:int>>", "array<struct<b: int, a: int, c: int>>"]
)
def test_a_renamed_field_is_copied_with_its_neighbours(live: str) -> None:
    assert ddl.renamed("t", [("parts.b", "parts.c")], {"parts": live}) == [
        "UPDATE t SET `parts` = transform(`parts`, p -> named_struct("
        "'b', p.`b`, 'a', p.`a`, 'c', coalesce(p.`c`, p.`b`))) "
        "WHERE exists(`parts`, p -> p.`c` IS NULL AND p.`b` IS NOT NULL)"
    ]


@pytest.mark.parametrize("live", [{}, {"parts": "array<struct<a:int,c:int>>"}, {"parts": "int"}])
def test_a_field_that_a_table_lacks_is_not_copied(live: dict[str, str]) -> None:
    assert ddl.renamed("t", [("parts.b", "parts.c")], live) == []


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_a_table_equal_to_its_declaration_needs_nothing(table: Table) -> None:
    fields = dict(part.split("` ", 1) for part in _top_level(table.sql_schema))
    live = {name.strip("` "): text.lower().replace(": ", ":") for name, text in fields.items()}
    assert ddl.difference(table, "t", live) is None


def test_another_type_is_refused_with_what_to_do() -> None:
    with pytest.raises(
        ddl.IncompatibleTableError, match=r"t\.b is string and should be INT.*rebuild"
    ):
        ddl.difference(TABLE, "t", {"a": "string", "b": "string", "at": "timestamp"})


def _top_level(schema: str) -> list[str]:
    """The columns of Spark's DDL text: commas within <> do not part them."""
    parts, depth = [""], 0
    for character in schema:
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
