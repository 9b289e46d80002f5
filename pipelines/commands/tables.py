"""The commands tables, describe, show and ddl: read tables without a JVM."""

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated

import typer

from quotaflow.pipelines.commands import index, options
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.jobs import fillers
from quotaflow.pipelines.reference import catalogue, search
from quotaflow.pipelines.terminal import bars, grid, output, progress, texts, times
from quotaflow.pipelines.terminal.layout import Layout
from quotaflow.pipelines.warehouse import browsing, parquet_file, query_process, statements
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.schemas.tables.declared import SETTINGS
from quotaflow.udfs.counted import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from quotaflow.pipelines.config import Conf
    from quotaflow.pipelines.warehouse.reader import Reader

_PIPE_WIDTH = 100
_PROGRESS = "pipeline_progress"
_CONFIGS = {"current_configs", "current_client_quotas"}
_CHANGES = ("configs", "client_quotas", "config_alterations", "config_changes")


class Dialect(StrEnum):
    """Whose SQL `ddl` prints."""

    SPARK = "spark"
    DUCKDB = "duckdb"


_Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A table or view: see `tables`.",
        autocompletion=options.relations,
    ),
]


def tables(
    word: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORD]...", help="Words that a name, or a meaning, must have; all without one."
        ),
    ] = None,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="Also list what serves other tables and views.")
    ] = False,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """List tables and views by area, or search them and their columns.

    Each has the question that its rows answer; --all also lists those that serve them. Needs no
    JVM. A table that is not made yet has no rows: `quotaflow jobs` says which job fills it. With
    words it shows tables, views and columns that have all of them, or most, in their name,
    question or meaning, the best first. The search ignores case, and reads no table.

    Example: quotaflow tables

    Example: quotaflow tables throttle time
    """
    width = grid.screen_width()
    if word:
        try:
            hits = search.search(word, output.note)
        except search.NoRelationError as error:
            others = "; ".join(search.other_answers(word, index.COMMANDS))
            raise search.NoRelationError(f"{error}; {others}") from None
        if layout == Layout():
            output.lines(catalogue.hit_lines(hits, width or _PIPE_WIDTH))
        else:
            output.write([hit.row() for hit in hits], search.HITS, layout, by_importance=False)
        for line in search.questions(word):
            output.note(line)
        return
    with progress.shown("reading sizes"):
        reader = open_reader(conf.of_tables())
        rows = catalogue.extents(reader, every=every)
    if layout == Layout() and width is not None:
        output.lines(catalogue.by_area(rows, width))
    else:
        output.write(rows, browsing.EXTENT, layout, by_importance=False)


def describe(
    table: _Table,
    *,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """Describe a table or view: what a row is, what fills it, and what each column means.

    Needs no JVM where the tables are in a folder. A view has the types of its columns once the
    tables that it reads are made.

    Example: quotaflow describe quota_usage
    """
    name = catalogue.checked_name(table)
    rows = catalogue.columns(open_reader(conf.of_tables()), name)
    if layout == Layout():
        output.lines(catalogue.description(name, rows, grid.screen_width() or _PIPE_WIDTH))
    else:
        output.write(rows, catalogue.COLUMNS, layout, by_importance=False)


_Where = Annotated[
    str | None, typer.Option("--where", metavar="SQL", help="Rows for which this SQL is true.")
]
_Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        min=1,
        max=10**15,
        help="At most this many rows [20; all with --json, --csv or --out].",
    ),
]
_Chart = Annotated[
    str | None, typer.Option("--chart", metavar="COLUMN", help="A bar per row, by this column.")
]


def show(
    table: _Table,
    *,
    since: options.Since = None,
    where: _Where = None,
    limit: _Limit = None,
    chart: _Chart = None,
    out: options.Parquet = None,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """Show rows of a table or view, newest first, or the worst first where that helps more.

    --since also takes the hour, day or incident that had begun by then: `describe` says what it
    compares. Needs no JVM where the tables are in a folder.

    Example: quotaflow show requests --since 10m --where "api = 'PRODUCE' AND throttle_time_ms > 0"

    Example: quotaflow show top_talkers --chart produced_bytes
    """
    name = catalogue.checked_name(table)
    if chart and (out or layout != Layout()):
        raise ConfigError("--chart and other ways to print rows exclude each other: give one")
    if out:
        parquet_file.check(out, is_plain=layout == Layout())
    max_rows = limit if limit is not None or layout.is_for_programs or out else browsing.NEWEST_ROWS
    start = times.since(since, datetime.now(UTC)) if since else None
    settings = options.bounded(conf.of_tables())
    answer = partial(query_process.batches if where else _rows_of, settings)
    batches = answer(partial(browsing.newest, name, start, where, max_rows))
    if out:
        output.note(f"{counted(parquet_file.write(batches, out, name), 'row')} in {out}")
        return
    columns, rows = list(batches.schema.names), browsing.rows(batches, name)
    first = list(islice(rows, 1 if layout.is_for_programs else output.MAX_ROWS_ON_TERMINAL + 1))
    if chart:
        shown = first[: output.MAX_ROWS_ON_TERMINAL]
        output.lines(bars.lines(shown, columns, chart, grid.screen_width() or _PIPE_WIDTH))
    else:
        output.write(chain(first, rows), columns, layout)
    if not first and not (since or where) and (reason := browsing.why_empty(name)):
        output.note(f"{name} is empty {reason}")
    if not layout.is_for_programs:
        if len(first) == max_rows:
            _note_rest(len(first), answer(partial(browsing.count, name, start, where)))
        _note_age(name, settings)


def _note_rest(shown: int, count: "pa.RecordBatchReader") -> None:
    (total,) = count.read_all()["n"].to_pylist()
    if total > shown:
        listed = f"{shown:,} of {counted(total, 'row')}"
        output.note(f"{listed}: --limit has more, --json and --csv have all")


def _note_age(name: str, settings: "Conf") -> None:
    """Say the time of the newest rows behind the shown ones, and of the snapshot."""
    is_current = name.startswith("current_")
    # There it would take as many statements again as the rows.
    if settings.warehouse.catalog_schema and not is_current:
        return
    events, others = browsing.tables_behind(name)
    taken = {each for each in others if fillers.filler(each) == "snapshot"}
    tables = open_reader(settings)
    if events and not is_current:
        # There settings are no state of the cluster: they have what conf says of prices and bounds.
        taken.discard(SETTINGS.name)
        if newest := browsing.newest_times(tables.extents(events), datetime.now(UTC)):
            output.note(f"newest data: {'; '.join(newest)}")
    if taken:
        _note_snapshot(name, taken, tables)


def _note_snapshot(name: str, taken: Iterable[str], tables: "Reader") -> None:
    """As of when a view of snapshots is, and whether configs were changed since."""
    for row in tables.rows(browsing.last_snapshot(taken)) if tables.is_made(_PROGRESS) else ():
        if row["taken_at"] is not None:
            output.note(f"as of the snapshot at {texts.moment(row['taken_at'])} UTC")
            if name in _CONFIGS and all(map(tables.is_made, _CHANGES)):
                (later,) = tables.rows(browsing.changes_since(row["taken_at"]))
                _note_changes(later["n"], row["taken_at"])


def _note_changes(count: int, since: datetime) -> None:
    if count:
        changes = f"{counted(count, 'change')} of configs and quotas came since"
        command = f"quotaflow show config_value_changes --since {since:%Y-%m-%dT%H:%M:%SZ}"
        output.note(f"{changes}: `{command}`")


def _rows_of(settings: "Conf", ask: query_process.Ask) -> "pa.RecordBatchReader":
    with progress.shown("computing"):
        return ask(open_reader(settings))


_Dialect = Annotated[
    Dialect, typer.Option("--dialect", help="Whose SQL: spark, or duckdb over a folder.")
]
_Dbt = Annotated[bool, typer.Option("--dbt", help="Print a sources.yml of dbt instead of SQL.")]
_Grants = Annotated[
    bool, typer.Option("--grants", help="Print what each identity may do, in conf's catalog.")
]
_Jobs = Annotated[
    str, typer.Option("--jobs", metavar="NAME", help="Who runs the jobs that read topics.")
]
_Operator = Annotated[
    str, typer.Option("--operator", metavar="NAME", help="Who plans, applies and restores.")
]


def ddl(
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="[TABLE]",
            help="One table or view; all without it.",
            autocompletion=options.relations,
        ),
    ] = None,
    *,
    dialect: _Dialect = Dialect.SPARK,
    dbt: _Dbt = False,
    grants: _Grants = False,
    jobs: _Jobs = "quotaflow-jobs",
    operator: _Operator = "quotaflow-operator",
    conf: options.ConfOptions,
) -> None:
    """Print CREATE TABLE and CREATE VIEW with the meaning of each column, or GRANT statements.

    Needs no JVM. For DuckDB a table is a view over the Delta table in conf's folder. With --dbt
    tables and views are sources, in conf's catalog, or in a DuckDB that ran what --dialect duckdb
    prints. With --grants only the operator may change the tables of plans and of what was written
    to brokers.

    Example: quotaflow ddl requests

    Example: quotaflow ddl --dialect duckdb > quotaflow.sql

    Example: quotaflow ddl --dbt > models/sources.yml

    Example: quotaflow ddl --grants --set warehouse.catalog_schema=main.quotaflow
    """
    if dbt:
        output.lines([statements.dbt_sources(table, conf.load()).rstrip()])
    elif grants:
        output.lines(statements.grant_statements(conf.load(), jobs, operator))
    elif dialect == Dialect.SPARK:
        # Names depend on conf only where the ledger has a schema of its own.
        ledger = conf.load().warehouse.ledger_schema
        output.lines(statements.create_statements(table, ledger))
    else:
        settings = conf.of_tables()
        output.lines(statements.create_statements_of_duckdb(table, settings))
