"""The commands tables, show, sql and ddl: read tables without a JVM."""

import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.terminal import output
from quotaflow.pipelines.terminal.layout import Layout


class Dialect(StrEnum):
    """Whose SQL `ddl` prints."""

    SPARK = "spark"
    DUCKDB = "duckdb"


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("tables")(options.with_layout(list_tables))
    app.command("show")(options.with_layout(show))
    app.command("sql")(options.with_layout(sql))
    app.command("ddl")(print_ddl)


def list_tables(
    conf: options.ConfFile = None,
    overrides: options.Overrides = None,
    *,
    layout: Layout,
) -> None:
    """List the tables: rows, newest event, size, meaning.

    Needs no JVM. A table without a number of rows does not exist yet: `quotaflow jobs` says which
    job fills it.

    Example: quotaflow tables
    """
    from quotaflow.pipelines.commands import answers  # noqa: PLC0415  imports pyarrow

    tables_reader = answers.open_reader(options.conf(conf, overrides))
    rows = answers.extents(tables_reader)
    output.write(rows, answers.EXTENT, layout, by_importance=False)


def show(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A table or view: see `tables`.")],
    *,
    since: options.Since = None,
    where: Annotated[
        str | None, typer.Option("--where", metavar="SQL", help="Rows for which this SQL is true.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=1, help="At most this many rows [20; all with --json or --csv]."
        ),
    ] = None,
    conf: options.ConfFile = None,
    overrides: options.Overrides = None,
    layout: Layout,
) -> None:
    """Show rows of a table or view, newest first.

    Needs no JVM.

    Example: quotaflow show requests --since 10m --where "api = 'PRODUCE' AND throttle_time_ms > 0"
    """
    from quotaflow.pipelines.commands import answers  # noqa: PLC0415  imports pyarrow

    name = answers.checked_name(table)
    max_rows = limit if limit is not None or layout.is_for_programs else answers.NEWEST_ROWS
    start = options.since(since, datetime.now(UTC)) if since else None
    tables_reader = answers.open_reader(options.conf(conf, overrides))
    columns = tables_reader.columns(name)
    query = answers.select(name, columns, start, where, max_rows)
    rows = answers.rows(tables_reader.query(query), query)
    output.write(rows, columns, layout)


def sql(
    query: Annotated[
        str,
        typer.Argument(
            metavar="SQL", help="One query over tables and views; - reads it from stdin."
        ),
    ],
    *,
    spark: Annotated[
        bool, typer.Option("--spark", help="Spark's dialect, in a local Spark session (a JVM).")
    ] = False,
    conf: options.ConfFile = None,
    overrides: options.Overrides = None,
    layout: Layout,
) -> None:
    """Answer one SQL query over tables and views.

    Needs no JVM, and cannot change anything. The dialect is DuckDB's, also DESCRIBE, SHOW TABLES,
    SUMMARIZE, EXPLAIN and information_schema; with --spark it is Spark's, which needs a JDK. Conf
    bounds its memory (warehouse.query_memory_mb) and time (warehouse.query_timeout_s).

    Example: quotaflow sql "SELECT principal, count(*) AS n FROM requests GROUP BY 1 ORDER BY n"

    Example: quotaflow sql "DESCRIBE requests"

    Example: quotaflow sql - --csv < hourly.sql
    """
    from quotaflow.pipelines.commands import answers  # noqa: PLC0415  imports pyarrow

    settings = options.conf(conf, overrides)
    text = sys.stdin.read() if query == "-" else query
    if spark:
        from quotaflow.pipelines.warehouse import spark_reader  # noqa: PLC0415  starts a JVM

        limit = None if layout.is_for_programs else output.MAX_ROWS_ON_TERMINAL + 1
        answer = spark_reader.query(settings, text, limit, output.note)
    else:
        answer = answers.open_reader(settings).query(text)
    names, rows = list(answer.schema.names), answers.rows(answer, text)
    output.write(rows, names, layout, by_importance=False)


def print_ddl(
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="One table or view; all without it.")
    ] = None,
    *,
    dialect: Annotated[
        Dialect, typer.Option("--dialect", help="Whose SQL: spark, or duckdb over a folder.")
    ] = Dialect.SPARK,
    grants: Annotated[
        bool, typer.Option("--grants", help="Print what each identity may do, in conf's catalog.")
    ] = False,
    jobs: Annotated[
        str, typer.Option("--jobs", metavar="NAME", help="Who runs the jobs that read topics.")
    ] = "quotaflow-jobs",
    operator: Annotated[
        str, typer.Option("--operator", metavar="NAME", help="Who plans, applies and restores.")
    ] = "quotaflow-operator",
    conf: options.ConfFile = None,
    overrides: options.Overrides = None,
) -> None:
    """Print CREATE TABLE and CREATE VIEW with the meaning of each column, or GRANT statements.

    Needs no JVM. For DuckDB a table is a view over the Delta table in conf's folder. With --grants
    only the operator may change the tables of plans and of what was written to brokers.

    Example: quotaflow ddl requests

    Example: quotaflow ddl --dialect duckdb > quotaflow.sql

    Example: quotaflow ddl --grants --set warehouse.catalog_schema=main.quotaflow
    """
    from quotaflow.pipelines.commands import answers  # noqa: PLC0415  imports pyarrow

    if grants:
        output.lines(answers.grant_statements(options.conf(conf, overrides), jobs, operator))
    elif dialect == Dialect.SPARK:
        # Names depend on conf only where the ledger has a schema of its own.
        is_given = conf is not None or bool(overrides)
        ledger = options.conf(conf, overrides).warehouse.ledger_schema if is_given else None
        output.lines(answers.create_statements(table, ledger))
    else:
        settings = options.conf(conf, overrides)
        output.lines(answers.create_statements_of_duckdb(table, settings))
