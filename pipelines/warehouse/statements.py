"""CREATE and GRANT statements of tables and views, and sources of dbt."""

from collections.abc import Iterator

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.warehouse import dbt_sources as sources
from quotaflow.pipelines.warehouse import place, views
from quotaflow.pipelines.warehouse.browsing import checked_name
from quotaflow.pipelines.warehouse.kept_translations import in_duckdb
from quotaflow.schemas import ddl, grants
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.view import View


def create_statements(name: str | None, ledger_schema: str | None = None) -> Iterator[str]:
    """CREATE statements of one table or view, or of all, in Spark's SQL.

    Tables of a ledger in another schema have views under their names, which other views read.
    """
    for each in _names(name):
        table = TABLES.get(each)
        if table is None:
            yield f"{ddl.create_view(views.load()[each])};"
        elif ledger_schema is None or each not in grants.OPERATOR_TABLES:
            yield f"{ddl.create(table, each)};"
        else:
            yield f"{ddl.create(table, f'{ledger_schema}.{each}')};"
            yield f"CREATE OR REPLACE VIEW {each} AS SELECT * FROM {ledger_schema}.{each};"


def grant_statements(conf: Conf, jobs: str, operator: str) -> Iterator[str]:
    """GRANT statements for conf's catalog. Raises ConfigError for tables in a folder."""
    schema = conf.warehouse.catalog_schema
    if schema is None:
        raise ConfigError(
            "the tables are in a folder, which has no grants: name a catalog with "
            "--set warehouse.catalog_schema=CATALOG.SCHEMA"
        )
    tables = grants.Place(*schema.split("."))
    ledger = grants.Place(*(conf.warehouse.ledger_schema or schema).split("."))
    for statement in grants.statements(tables, ledger, jobs, operator):
        yield f"{statement};"


def create_statements_of_duckdb(name: str | None, conf: Conf) -> Iterator[str]:
    """The same in DuckDB's SQL, over the tables of conf's folder; first what a session needs.

    Raises ConfigError for tables in a catalog, whose files DuckDB does not know.
    """
    if conf.warehouse.catalog_schema:
        raise ConfigError(
            f"the tables are in the catalog {conf.warehouse.catalog_schema}: DuckDB reads tables "
            "of a folder: name it with --set warehouse.path=FOLDER"
        )
    yield from SETUP
    for each in _names(name):
        table = TABLES.get(each)
        root = place.root(conf.warehouse)
        text = create_table(table, root) if table else create_view(views.load()[each])
        yield f"{text};"


def dbt_sources(name: str | None, conf: Conf) -> str:
    """One table or view, or all, as sources of dbt in YAML."""
    return sources.text(_names(name), conf)


def _names(name: str | None) -> list[str]:
    return [checked_name(name)] if name else [*TABLES, *views.load()]


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
