"""What `ddl --dialect duckdb` prints, pasted into DuckDB."""

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...command_line import Command
from ...schemas.views.filled_views import FILLED
from ...schemas.views.view_tables import make_tables, make_tables_and_answers


def printed(command: Command, *words: str) -> str:
    place = ["--set", "warehouse.path=/data/it's"]
    return command("ddl", *words, "--dialect", "duckdb", *place).out


def pasted(text: str, warehouse: Warehouse) -> duckdb.DuckDBPyConnection:
    """A DuckDB that has run the text over all tables, with a macro for its extension delta."""
    connection = duckdb.connect()
    for name in TABLES:
        rows = pa.table(DeltaTable(warehouse.folder(name)).to_pyarrow_table())
        connection.register("rows", rows)
        connection.execute(f'CREATE TABLE "rows of {name}" AS SELECT * FROM rows').fetchall()
        connection.unregister("rows")
    tables = "query_table('rows of ' || parse_filename(path))"
    connection.execute(f"CREATE MACRO delta_scan(path) AS TABLE SELECT * FROM {tables}").fetchall()
    first, second, rest = text.split("\n", 2)
    assert (first, second) == ("INSTALL delta;", "LOAD delta;")
    for statement in connection.extract_statements(rest):
        connection.execute(statement).fetchall()
    return connection


@pytest.mark.faults
def test_all_of_it_makes_every_table_and_view_with_its_meaning(
    command: Command, warehouse: Warehouse
) -> None:
    text = printed(command)
    make_tables_and_answers(warehouse, FILLED)
    assert "delta_scan('/data/it''s/requests')" in text
    connection = pasted(text, warehouse)
    for name in views.load():
        assert connection.execute(f"SELECT * FROM {name}").fetchall() != [], name
    rows = connection.execute("SELECT view_name, comment FROM duckdb_views() WHERE NOT internal")
    comments = dict(rows.fetchall())
    assert comments == {name: each.comment for name, each in (TABLES | dict(views.load())).items()}
    columns = connection.execute(
        "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'traffic_by_hour'"
    )
    described = {column.name: column.comment for column in views.load()["traffic_by_hour"].columns}
    assert dict(columns.fetchall()) == described


def test_one_table_is_enough_to_be_read(command: Command, warehouse: Warehouse) -> None:
    text = printed(command, "quota_usage")
    make_tables(warehouse, {"quota_usage": FILLED["quota_usage"]})
    assert "CREATE OR REPLACE VIEW requests" not in text
    assert pasted(text, warehouse).execute("SELECT count(*) FROM quota_usage").fetchall() != [(0,)]


def test_tables_of_a_catalog_are_not_printed(command: Command) -> None:
    place = ["--set", "warehouse.catalog_schema=main.q"]
    printed = command("ddl", "--dialect", "duckdb", *place, code=2)
    assert "the tables are in the catalog main.q" in printed.err
