"""Tables and views as CREATE text for DuckDB, which reads tables by its extension delta."""

from quotaflow.pipelines.warehouse.kept_translations import in_duckdb
from quotaflow.schemas.table import Table
from quotaflow.schemas.view import View

SETUP = ("INSTALL delta;", "LOAD delta;", "SET GLOBAL TimeZone = 'UTC';")
"""What a session needs before the rest. The extension comes from DuckDB's own site."""


def create_table(table: Table, root: str) -> str:
    """A view of the table's name over its newest version. `root` has the tables."""
    sql = f"SELECT * FROM delta_scan({_text(f'{root}/{table.name}')})"
    comments = {column.name: column.comment for column in table.columns}
    return _create(table.name, sql, table.comment, comments)


def create_view(view: View) -> str:
    """The view, over tables and views of their names."""
    comments = {column.name: column.comment for column in view.columns}
    return _create(view.name, in_duckdb(view.sql), view.comment, comments)


def _create(name: str, sql: str, comment: str, columns: dict[str, str]) -> str:
    statements = [f"CREATE OR REPLACE VIEW {name} AS\n{sql}"]
    statements += [f"COMMENT ON VIEW {name} IS {_text(comment)}"]
    statements += [
        f'COMMENT ON COLUMN {name}."{column}" IS {_text(meaning)}'
        for column, meaning in columns.items()
    ]
    return ";\n".join(statements)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
