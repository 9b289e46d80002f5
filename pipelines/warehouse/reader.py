"""Tables and views without a JVM: DataFusion SQL over the Delta tables of a folder, read-only."""

import difflib
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from quotaflow.pipelines.errors import ConfigError, NeverMadeError, QuotaflowError
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

if TYPE_CHECKING:
    import pyarrow as pa

_QUERY = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/|\()*(?:select|with|values)\b", re.I | re.S)
# What engines take for names, comments and text; a backslash escapes in Spark's text alone.
_NAMED = r"`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/"
_QUOTED = (
    re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|" + _NAMED, re.S),
    re.compile(r"'[^']*'|\"[^\"]*\"|" + _NAMED, re.S),
)
_WRITES = re.compile(
    r"\b(?:insert\s+(?:into|overwrite)|merge\s+(?:with\s+schema\s+evolution\s+)?into|delete\s+from"
    r"|update\b(?=[^(),]*?\bset\b))",
    re.I,
)
_NOT_FOUND = re.compile(r"table 'datafusion\.public\.(.+?)' not found|No field named (\S+?)\. ")
# A join tells the scan of its other side which keys it wants, but of two columns with the name of a
# key it takes the first: rows are lost, sometimes or always (apache/datafusion 25244 and 25264).
_NO_GUESSES = "SET datafusion.optimizer.enable_dynamic_filter_pushdown = false"
_MESSAGE_CHARS = 400


class QueryError(QuotaflowError):
    """A query that cannot be answered: the SQL engine's word, in one line."""

    def __init__(self, message: str, no_table: str | None = None) -> None:
        super().__init__(message)
        self.no_table = no_table


@dataclass(frozen=True, slots=True)
class TableSummary:
    """How much a table holds; all None when it was never made."""

    rows: int | None = None
    last_event_time_us: int | None = None
    size_bytes: int | None = None


# Python puts these for bytes of an argument that it cannot read.
_UNREADABLE = re.compile("[\ud800-\udfff]")


def check_query(sql: str) -> None:
    """Raise ConfigError unless the text is a query: engines would also write and read files."""
    if _UNREADABLE.search(sql):
        raise ConfigError("the query is not UTF-8: give it in UTF-8, under a locale of UTF-8")
    if not _QUERY.match(sql):
        word = (sql.split() or ["nothing"])[0]
        raise ConfigError(f"only queries are run here (SELECT, WITH or VALUES), not {word[:40]}")
    # Spark's WITH may stand before what writes, too.
    for quoted in _QUOTED:
        if match := _WRITES.search(quoted.sub(" ", sql)):
            word = " ".join(match[0].split()).upper()
            raise ConfigError(f"only queries are run here, and {word} writes")


@dataclass(frozen=True, slots=True)
class Reader:
    """Answers queries over the tables of one warehouse; a table is opened when a query names it."""

    warehouse: Warehouse
    _opened: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.warehouse.conf.catalog_schema:
            raise ConfigError(
                f"the tables are in the catalog {self.warehouse.conf.catalog_schema}, which is "
                'read through Spark: quotaflow sql --spark "SELECT ..."'
            )

    def is_made(self, table: str) -> bool:
        """Whether a table was ever made."""
        return (self.warehouse.folder(table) / "_delta_log").is_dir()

    def table_id(self, table: str) -> str:
        """The id that checkpoints of queries know a table by; made again, it has another."""
        return str(self._table(table).metadata().id)

    def types(self, table: str) -> dict[str, Any]:
        """The type of each column of the live table, as Delta's own schema has it in JSON."""
        schema = json.loads(self._table(table).schema().to_json())
        return {column["name"]: column["type"] for column in schema["fields"]}

    def columns(self, name: str) -> list[str]:
        """Columns of a table or view: those declared, in their order, that the live one has."""
        if name in views.load():
            return list(self.query(f"SELECT * FROM {name} LIMIT 0").schema.names)
        live = {column.name for column in self._table(name).schema().fields}
        return [column for column in TABLES[name].column_names if column in live]

    def extent(self, name: str) -> TableSummary:
        """Rows, newest event_time and bytes of a table as its newest version has them."""
        if not self.is_made(name):
            return TableSummary()
        time = TABLES[name].time
        sql = f"SELECT count(*) AS rows, max({time}) AS last FROM {name}"
        with engine_errors(sql):
            rows, last = self.query(sql).read_all().columns
            sizes = self._table(name).get_add_actions(flatten=True)["size_bytes"].to_pylist()
        # As a number: a hostile clock may be past the years Python knows.
        return TableSummary(rows[0].as_py(), last.cast("int64")[0].as_py(), sum(sizes))

    def query(self, sql: str) -> "pa.RecordBatchReader":
        """The rows of one query over tables and views, batch by batch.

        Raises QueryError, or NeverMadeError when it names a table that no job has filled yet.
        Reading a batch may still fail: do it under `engine_errors`.
        """
        import pyarrow as pa  # noqa: PLC0415  --help need not wait for it
        from deltalake import QueryBuilder  # noqa: PLC0415

        check_query(sql)
        builder = QueryBuilder()
        named_tables, needed_views = views.dependencies(sql)
        for name in filter(self.is_made, named_tables):
            builder.register(name, self._table(name))
        created = [views.create_in_datafusion(views.load()[name]) for name in needed_views]
        try:
            with engine_errors(sql):
                for first in (_NO_GUESSES, *created):
                    pa.RecordBatchReader.from_stream(builder.execute(first)).read_all()
                return pa.RecordBatchReader.from_stream(builder.execute(sql))
        except QueryError as error:
            # Only the engine knows which names are tables: a WITH may bear a table's name.
            if error.no_table is not None and error.no_table in TABLES:
                raise NeverMadeError(error.no_table, self.warehouse.conf.folder) from None
            raise

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """All rows of a query that bounds how many those are; raises as `query`."""
        with engine_errors(sql):
            rows: list[dict[str, Any]] = self.query(sql).read_all().to_pylist()
        return rows

    def _table(self, name: str) -> Any:
        from deltalake import DeltaTable  # noqa: PLC0415

        if not self.is_made(name):
            raise NeverMadeError(name, self.warehouse.conf.folder)
        if name not in self._opened:
            with engine_errors(name):
                self._opened[name] = DeltaTable(self.warehouse.folder(name))
        return self._opened[name]


@contextmanager
def engine_errors(sql: str) -> Iterator[None]:
    """Turns what DataFusion, Delta and Arrow raise while they answer `sql` into a QueryError."""
    from deltalake.exceptions import DeltaError  # noqa: PLC0415
    from pyarrow import ArrowException  # noqa: PLC0415

    try:
        yield
    except (DeltaError, ArrowException, OSError) as error:
        raise _query_error(str(error), sql) from None


def _query_error(message: str, sql: str) -> QueryError:
    """The engine's message without its line breaks and long lists, with the nearest right name."""
    text = " ".join(message.split())
    missing = _NOT_FOUND.search(text + " ")
    if missing is None:
        return QueryError(text[:_MESSAGE_CHARS] if text else f": {sql[:80]!r}")
    table, column = missing.groups()
    if table:
        near = nearest(table, [*TABLES, *views.load()])
        return QueryError(f"no table {table}{near}", no_table=table)
    fields = re.findall(r"[\w.]+", text.partition("Valid fields are")[2])
    names = [field.rpartition(".")[2] for field in fields]
    return QueryError(f"no column {column}{nearest(column.rpartition('.')[2], names)}")


def nearest(name: str, candidates: list[str]) -> str:
    """The known name most like a wrong one, else all of them, as the end of an error."""
    near = difflib.get_close_matches(name.lower(), candidates, n=1, cutoff=0.5)
    return f" (did you mean {near[0]}?)" if near else f" (known: {', '.join(candidates)})"


def one_cluster(cluster_ids: Iterable[str], pinned: str | None) -> str | None:
    """The cluster that conf pins, else the only one that is known; None where none is.

    Raises ConfigError where several are known and conf pins none.
    """
    ids = sorted(cluster_ids)
    if pinned is None and len(ids) > 1:
        raise ConfigError(
            f"the tables hold clusters {', '.join(ids)}: name one with --set kafka.cluster_id=ID"
        )
    return pinned or next(iter(ids), None)
