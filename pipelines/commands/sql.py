"""The command sql: queries over tables and views, one or a shell of them."""

import sys
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.terminal import output
from quotaflow.pipelines.terminal.layout import Layout
from quotaflow.pipelines.warehouse import browsing, parquet_file, query_process, spark_reader
from quotaflow.udfs.counted import counted

if TYPE_CHECKING:
    from quotaflow.pipelines.config import Conf

Query = Annotated[
    str | None,
    typer.Argument(metavar="[SQL]", help="One query over tables and views; - reads it from stdin."),
]
File = Annotated[
    Path | None, typer.Option("-f", "--file", metavar="FILE", help="Read the query from this file.")
]
Spark = Annotated[
    bool, typer.Option("--spark", help="Spark's dialect, in a local Spark session (a JVM).")
]


def sql(
    query: Query = None,
    *,
    file: File = None,
    spark: Spark = False,
    out: options.Parquet = None,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """Answer one SQL query over tables and views, or open a shell for many.

    Without a query it reads one from stdin. On a terminal it is a shell with a history. A query
    ends with ;, Tab completes, Ctrl-C cancels a query, Ctrl-D ends, and \\? shows the rest.

    It cannot change anything. The dialect is DuckDB's, also DESCRIBE, SHOW TABLES, SUMMARIZE,
    EXPLAIN and information_schema; with --spark it is Spark's, which needs a JDK, as tables in a
    catalog may. Conf bounds its memory (warehouse.query_memory_mb) and time
    (warehouse.query_timeout_s; 60 s on a terminal, if conf has none).

    Count requests by sum(weight): count(*) counts lines, which are fewer where ingest samples.

    Example: quotaflow sql "SELECT principal, sum(weight) AS n FROM requests GROUP BY 1 ORDER BY n"

    Example: quotaflow sql -f hourly.sql --csv

    Example: quotaflow sql -f hourly.sql --out hourly.parquet

    Example: quotaflow sql
    """
    settings = conf.of_tables()
    text = _text(query, file)
    if text is None and (spark or out):
        given = "--spark" if spark else "--out"
        raise ConfigError(f"{given} needs a query: the shell has DuckDB's SQL, and prints rows")
    if text is None:
        from quotaflow.pipelines.commands import sql_shell  # noqa: PLC0415  imports pyarrow

        sql_shell.run(settings, answer, layout)
    elif text.lstrip().startswith("\\"):
        raise ConfigError(
            "commands that begin with \\ are those of the shell, which needs a terminal: here run "
            "`quotaflow describe NAME` for \\d, and `quotaflow tables WORD` for \\s"
        )
    else:
        answer(settings, text, layout, spark=spark, out=out)


def answer(
    settings: "Conf", text: str, layout: Layout, *, spark: bool = False, out: Path | None = None
) -> None:
    """Print the rows of one query, or write them to a file. Raises as `Reader.query`."""
    if out:
        parquet_file.check(out, is_plain=layout == Layout())
    if spark:
        is_all = layout.is_for_programs or out is not None
        limit = None if is_all else output.MAX_ROWS_ON_TERMINAL + 1
        batches = spark_reader.query(settings, text, limit, output.note)
    else:
        batches = query_process.batches(options.bounded(settings), methodcaller("query", text))
    if out:
        output.note(f"{counted(parquet_file.write(batches, out, text), 'row')} in {out}")
        return
    names, rows = list(batches.schema.names), browsing.rows(batches, text)
    output.write(rows, names, layout, by_importance=False)


def _text(query: str | None, file: Path | None) -> str | None:
    """The text of the query; None for a shell."""
    if query is not None and file is not None:
        raise ConfigError("a query and --file exclude each other: give one")
    if file is not None and file != Path("-"):
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read {file}: {error}") from None
    if query is None and file is None and sys.stdin.isatty():
        return None
    return sys.stdin.read() if query in (None, "-") else query
