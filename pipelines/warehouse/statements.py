"""CREATE and GRANT statements of tables and views, and sources of dbt."""

from collections.abc import Iterator

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.warehouse import dbt_sources as sources
from quotaflow.pipelines.warehouse import duckdb_ddl, place, views
from quotaflow.pipelines.warehouse.browsing import checked_name
from quotaflow.schemas import ddl, grants
from quotaflow.schemas.tables.catalog import TABLES


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
    yield from duckdb_ddl.SETUP
    for each in _names(name):
        table = TABLES.get(each)
        root = place.root(conf.warehouse)
        text = (
            duckdb_ddl.create_table(table, root)
            if table
            else duckdb_ddl.create_view(views.load()[each])
        )
        yield f"{text};"


def dbt_sources(name: str | None, conf: Conf) -> str:
    """One table or view, or all, as sources of dbt in YAML."""
    return sources.text(_names(name), conf)


def _names(name: str | None) -> list[str]:
    return [checked_name(name)] if name else [*TABLES, *views.load()]
