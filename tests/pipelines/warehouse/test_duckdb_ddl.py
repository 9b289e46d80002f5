"""What `ddl --dialect duckdb` prints, pasted into DuckDB."""

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...command_line import Command, in_options
from ...schemas.views.filled_views import FILLED
from ...schemas.views.view_tables import make_tables, make_tables_and_answers

LINES = ("1.5.5", "1.4.4")
"""Of the two newest lines of DuckDB with an extension delta on PyPI the newest; docs/tables.md."""
COUNTED = """
import json, sys, duckdb
connection = duckdb.connect()
connection.execute(f"LOAD '{sys.argv[1]}'")
for statement in connection.extract_statements(sys.stdin.read()):
    connection.execute(statement).fetchall()
views = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
counted = {n: connection.execute(f'SELECT count(*) FROM "{n}"').fetchall()[0][0] for n, in views}
print(json.dumps(counted))
"""


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


@pytest.mark.faults
def test_all_of_it_runs_in_the_newest_lines_with_an_extension(
    command: Command, warehouse: Warehouse, tmp_path: Path
) -> None:
    make_tables_and_answers(warehouse, FILLED)
    place = in_options(f"warehouse.path={warehouse.conf.path}")
    _, _, text = command("ddl", "--dialect", "duckdb", *place).out.split("\n", 2)
    page = (Path(__file__).parents[3] / "docs" / "tables.md").read_text(encoding="utf-8")
    assert f"DuckDB {LINES[0]} and {LINES[1]}" in page
    uv, environment = Path(sys.executable).with_name("uv"), os.environ | {"UV_SYSTEM_CERTS": "1"}
    for line in LINES:
        python = tmp_path / line / "bin" / "python"
        packages = [f"duckdb=={line}", f"duckdb-extension-delta=={line}"]
        install = [uv, "pip", "install", "-q", "--python", python, *packages]
        subprocess.run([uv, "venv", "-q", tmp_path / line], check=True, env=environment)
        subprocess.run(install, check=True, env=environment)
        (extension,) = (tmp_path / line).rglob("delta.duckdb_extension")
        counting = [python, "-c", COUNTED, extension]
        done = subprocess.run(counting, input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (line, done.stderr)
        rows = json.loads(done.stdout)
        assert rows.keys() == TABLES.keys() | views.load().keys()
        assert [name for name in views.load() if not rows[name]] == [], line


def test_one_table_is_enough_to_be_read(command: Command, warehouse: Warehouse) -> None:
    text = printed(command, "quota_usage")
    make_tables(warehouse, {"quota_usage": FILLED["quota_usage"]})
    assert "CREATE OR REPLACE VIEW requests" not in text
    assert pasted(text, warehouse).execute("SELECT count(*) FROM quota_usage").fetchall() != [(0,)]


def test_tables_of_a_catalog_are_not_printed(command: Command) -> None:
    place = ["--set", "warehouse.catalog_schema=main.q"]
    printed = command("ddl", "--dialect", "duckdb", *place, code=2)
    assert "the tables are in the catalog main.q" in printed.err
