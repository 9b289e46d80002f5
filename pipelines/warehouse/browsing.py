"""Tables and views as people read them: which there are, how large, and their newest rows."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from quotaflow.pipelines.errors import ConfigError, nearest
from quotaflow.pipelines.terminal import readable, values
from quotaflow.pipelines.warehouse import row_times, views
from quotaflow.pipelines.warehouse.engine_errors import engine_errors
from quotaflow.pipelines.warehouse.reader import Reader, TableSummary
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.schemas.tables.catalog import EVENTS, TABLES

if TYPE_CHECKING:
    import pyarrow as pa

NEWEST_ROWS = 20
_TO_THE_SECOND = len("2026-01-31 12:00:00")
_BEHIND_US = 60_000_000
"""A row of a result has the start of its minute."""
_STEADY = frozenset(
    {
        *("requests", "telemetry_pushes", "client_metrics", "fetches"),
        *("request_times", "quota_usage", "traffic", "fetch_sizes", "group_commits"),
        *("replica_offsets", "rack_traffic", "replication_traffic"),
    }
)
"""Tables to which each minute of a busy cluster adds rows; others have changes, names or faults."""
_FIELDS = [field for table in TABLES.values() for field in table.arrow]
_UNORDERED = {field.name for field in _FIELDS if "map" in str(field.type)} | {
    *("instrumentation_scope", "metadata", "otel_resource"),
    *("gauge", "sum", "summary", "histogram", "exponential_histogram"),
}
"""Columns with maps, which Spark does not compare: of tables, and those that views make."""
EXTENT = ["name", "area", "kind", "rows", "last_event_time", "size_bytes", "question", "meaning"]


def extents(tables_reader: Reader, *, every: bool) -> list[dict[str, Any]]:
    """One row per table with its rows, newest event and size; then one per view.

    Without `every` only of those that answer a question.
    """
    shown = [name for name, table in TABLES.items() if every or table.question]
    tables = [_extent(*each) for each in tables_reader.extents(shown).items()]
    view_rows = [
        {"name": name, "kind": "view", "question": view.question, "meaning": view.comment}
        for name, view in sorted(views.load().items())
        if every or view.question
    ]
    return [{name: row.get(name) for name in EXTENT} for row in [*tables, *view_rows]]


def columns(tables_reader: Reader, name: str) -> list[str]:
    """Columns of a table or view: the declared ones that the live table has, in their order."""
    if name in views.load():
        return [column.name for column in views.load()[name].columns]
    live = tables_reader.types(name)
    return [column for column in TABLES[name].column_names if column in live]


def checked_name(name: str) -> str:
    """The name, if a table or view has it. Raises ConfigError with the nearest right name."""
    names = [*TABLES, *views.load()]
    if name in names:
        return name
    raise ConfigError(f"no table {name}{nearest(name, names)}")


def rows(batches: "pa.RecordBatchReader", query: str) -> Iterator[dict[str, Any]]:
    """Rows of an answer as JSON's own types. Raises QueryError if the answer fails midway."""
    with engine_errors(query):
        yield from values.rows(batches)


def newest(
    name: str, since: datetime | None, where: str | None, limit: int | None, tables: Reader
) -> "pa.RecordBatchReader":
    """The newest rows of a table or view. Raises as `Reader.query`, and ConfigError."""
    return tables.query(select(name, columns(tables, name), since, where, limit))


def count(
    name: str, since: datetime | None, where: str | None, tables: Reader
) -> "pa.RecordBatchReader":
    """How many rows `newest` has without a limit."""
    rows = select(name, columns(tables, name), since, where, None)
    return tables.query(f"SELECT count(*) AS n FROM (\n{rows}\n) AS listed")


def select(
    name: str,
    columns: list[str],
    since: datetime | None,
    where: str | None,
    limit: int | None,
) -> str:
    """The query of `show`: rows that the head puts first, or else the newest, if there is a time.

    `since` chooses the rows whose period touches the time from then on.
    Rows of one time are in the order of their rank, if they have one, and of their other columns:
    so each reader shows the same ones.
    """
    table = TABLES.get(name)
    period = row_times.period(name, columns)
    if since and not (period.time or period.end):
        raise ConfigError(f"{name} is a view without an event time: use --where instead of --since")
    conditions = [period.since(since)] if since else []
    # Each condition is on its own line, because user SQL may end in a comment.
    conditions += [f"(\n{where}\n)"] if where else []
    quoted = ", ".join(f'"{column}"' for column in columns)
    parts = [f"SELECT {quoted}\nFROM {name}"]
    parts += [f"WHERE {' AND '.join(conditions)}"] if conditions else []
    ranks = [each for each in columns if each.endswith("_rank")]
    others = [*ranks, *(each for each in (table.key if table else columns) if each in columns)]
    first = (table or views.load()[name]).first
    # A live table may lack a column that was added later.
    leading = [f'"{each}"' for each in (*first, period.time) if each in columns]
    order = [f"{each} DESC NULLS LAST" for each in dict.fromkeys(leading)]
    order += [
        f'"{each}"'
        for each in dict.fromkeys(others)
        if each not in _UNORDERED and f'"{each}"' not in leading
    ]
    parts += [f"ORDER BY {', '.join(order)}"] if order else []
    parts += [f"LIMIT {limit}"] if limit is not None else []
    return "\n".join(parts)


def tables_behind(name: str) -> tuple[list[str], list[str]]:
    """The tables that a table or view reads: facts and results, then all others."""
    read = views.read_by([name])[0]
    return [each for each in read if each in EVENTS], [each for each in read if each not in EVENTS]


def newest_times(summaries: Mapping[str, TableSummary], now: datetime) -> list[str]:
    """The newest time in tables, and that of each which is behind though its rows come steadily.

    In UTC, to the second. Empty where no table has rows. No row counts as newer than now, for a
    client whose clock is ahead sets the time of its rows.
    """
    now_us = round(now.timestamp() * 1e6)
    times = {
        name: min(last, now_us)
        for name, each in summaries.items()
        if (last := each.last_event_time_us) is not None
    }
    if not times:
        return []
    newest = max(times.values())
    behind = [
        f"of {name}: {_second(time)}"
        for name, time in times.items()
        if name in _STEADY and newest - time > _BEHIND_US
    ]
    return [_second(newest), *behind]


def _second(time_us: int) -> str:
    return f"{readable.whole('time', values.iso(time_us, 'us'))[:_TO_THE_SECOND]} UTC"


def last_snapshot(names: Iterable[str]) -> str:
    """The query of when these tables were last taken from the cluster."""
    listed = ", ".join(map(literal, sorted(names)))
    return f"SELECT max(taken_at) AS taken_at FROM snapshot_times WHERE table_name IN ({listed})"


def changes_since(moment: datetime) -> str:
    """The query of how many changes of configs are known that came after a snapshot."""
    return (
        "SELECT count(*) AS n FROM config_value_changes "
        f"WHERE changed_at > {literal(moment)} AND known_by <> 'snapshot'"
    )


def why_empty(name: str) -> str | None:
    """The reason of the head for which a table or view may have no rows."""
    return (TABLES.get(name) or views.load()[name]).empty


def _extent(name: str, extent: TableSummary) -> dict[str, Any]:
    last = extent.last_event_time_us
    return {
        "name": name,
        "kind": "table",
        "question": TABLES[name].question,
        "rows": extent.rows,
        "last_event_time": None if last is None else values.iso(last, "us"),
        "size_bytes": extent.size_bytes,
        "meaning": TABLES[name].comment,
    }
