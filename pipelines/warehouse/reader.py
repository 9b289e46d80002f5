"""Reads tables and views without a JVM: DataFusion SQL over the Delta tables of a folder."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from quotaflow.pipelines.errors import ConfigError, NeverMadeError, QuotaflowError, nearest
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.migrations import SchemaVersionError, check_readable
from quotaflow.schemas.tables.catalog import TABLES

if TYPE_CHECKING:
    import pyarrow as pa

_QUERY = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/|\()*(?:select|with|values)\b", re.I | re.S)
# Names, comments and text of both engines. A backslash escapes only in Spark's text.
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
# A join passes its keys to the scan of its other side as a filter. Of two columns with a key's name
# it takes the first, and loses rows, sometimes or always (apache/datafusion 25244 and 25264).
_NO_DYNAMIC_FILTERS = "SET datafusion.optimizer.enable_dynamic_filter_pushdown = false"
_MESSAGE_CHARS = 400


class QueryError(QuotaflowError):
    """A query that cannot be answered, with the SQL engine's message in one line."""

    def __init__(self, message: str, no_table: str | None = None) -> None:
        super().__init__(message)
        self.no_table = no_table


@dataclass(frozen=True, slots=True)
class TableSummary:
    """The size of a table; all None if it does not exist."""

    rows: int | None = None
    last_event_time_us: int | None = None
    size_bytes: int | None = None


# Python decodes bytes of an argument that are not UTF-8 to these.
_UNREADABLE = re.compile("[\ud800-\udfff]")


def check_query(sql: str) -> None:
    """Raise ConfigError unless the text is a query: engines can also write, and read files."""
    if _UNREADABLE.search(sql):
        raise ConfigError("the query is not UTF-8: give it in UTF-8, under a locale of UTF-8")
    if not _QUERY.match(sql):
        word = (sql.split() or ["nothing"])[0]
        raise ConfigError(f"only queries are run here (SELECT, WITH or VALUES), not {word[:40]}")
    # In Spark, statements that write may start with WITH too.
    for quoted in _QUOTED:
        if match := _WRITES.search(quoted.sub(" ", sql)):
            word = " ".join(match[0].split()).upper()
            raise ConfigError(f"only queries are run here, and {word} writes")


@dataclass(frozen=True, slots=True)
class Reader:
    """Answers queries over the tables of a warehouse; a table is opened when a query names it."""

    warehouse: Warehouse
    _opened: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.warehouse.conf.catalog_schema:
            raise ConfigError(
                f"the tables are in the catalog {self.warehouse.conf.catalog_schema}, which is "
                'read through Spark: quotaflow sql --spark "SELECT ..."'
            )

    def is_made(self, table: str) -> bool:
        """Whether a table exists."""
        return (self.warehouse.folder(table) / "_delta_log").is_dir()

    def table_id(self, table: str) -> str:
        """The id of a table in checkpoints of queries. A table made again has another id."""
        return str(self._table(table).metadata().id)

    def types(self, table: str) -> dict[str, Any]:
        """The type of each column of the live table, in Delta's JSON schema."""
        schema = json.loads(self._table(table).schema().to_json())
        return {column["name"]: column["type"] for column in schema["fields"]}

    def columns(self, name: str) -> list[str]:
        """Columns of a table or view: the declared ones that the live table has, in their order."""
        if name in views.load():
            return list(self.query(f"SELECT * FROM {name} LIMIT 0").schema.names)
        live = {column.name for column in self._table(name).schema().fields}
        return [column for column in TABLES[name].column_names if column in live]

    def extent(self, name: str) -> TableSummary:
        """Rows, newest event_time and bytes of the newest version of a table."""
        if not self.is_made(name):
            return TableSummary()
        time = TABLES[name].time
        sql = f"SELECT count(*) AS rows, max({time}) AS last FROM {name}"
        with engine_errors(sql):
            rows, last = self.query(sql).read_all().columns
            sizes = self._table(name).get_add_actions(flatten=True)["size_bytes"].to_pylist()
        # As a number: a wrong clock may give years that Python's datetime does not have.
        return TableSummary(rows[0].as_py(), last.cast("int64")[0].as_py(), sum(sizes))

    def query(self, sql: str) -> "pa.RecordBatchReader":
        """The rows of one query over tables and views, batch by batch.

        Raises QueryError, NeverMadeError if the query names a table that does not exist yet, or
        ConfigError for a table of another schema version.
        Reading a batch can still fail: do it within `engine_errors`.
        """
        import pyarrow as pa  # noqa: PLC0415  --help need not wait for it
        from deltalake import QueryBuilder  # noqa: PLC0415

        check_query(sql)
        builder = QueryBuilder()
        named_tables, needed_views = views.dependencies(sql)
        for name in filter(self.is_made, named_tables):
            table = self._table(name)
            _check_readable(name, table)
            builder.register(name, table)
        created = [views.create_in_datafusion(views.load()[name]) for name in needed_views]
        try:
            with engine_errors(sql):
                for first in (_NO_DYNAMIC_FILTERS, *created):
                    pa.RecordBatchReader.from_stream(builder.execute(first)).read_all()
                return pa.RecordBatchReader.from_stream(builder.execute(sql))
        except QueryError as error:
            # Only the engine knows which names are tables: a WITH clause may have a table's name.
            if error.no_table is not None and error.no_table in TABLES:
                raise NeverMadeError(error.no_table, self.warehouse.conf.folder) from None
            raise

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """All rows of a query that limits their number; raises as `query`."""
        with engine_errors(sql):
            rows: list[dict[str, Any]] = self.query(sql).read_all().to_pylist()
        return rows

    def read(self, sql: str, schema: "pa.Schema") -> "pa.Table":
        """The same rows as Arrow, in columns of these names and types."""
        with engine_errors(sql):
            return self.query(sql).read_all().select(schema.names).cast(schema)

    def _table(self, name: str) -> Any:
        from deltalake import DeltaTable  # noqa: PLC0415

        if not self.is_made(name):
            raise NeverMadeError(name, self.warehouse.conf.folder)
        if name not in self._opened:
            with engine_errors(name):
                self._opened[name] = DeltaTable(self.warehouse.folder(name))
        return self._opened[name]


def _check_readable(name: str, table: Any) -> None:
    try:
        check_readable(name, table.metadata().configuration)
    except SchemaVersionError as error:
        raise ConfigError(str(error)) from None


@contextmanager
def engine_errors(sql: str) -> Iterator[None]:
    """Turn errors of DataFusion, Delta and Arrow within the block into a QueryError for `sql`."""
    from deltalake.exceptions import DeltaError  # noqa: PLC0415
    from pyarrow import ArrowException  # noqa: PLC0415

    try:
        yield
    except (DeltaError, ArrowException, OSError) as error:
        raise _query_error(str(error), sql) from None


def _query_error(message: str, sql: str) -> QueryError:
    """The engine's message without line breaks and long lists, with the nearest right name."""
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


def one_cluster(cluster_ids: Iterable[str], pinned: str | None) -> str | None:
    """The cluster that conf pins, else the only one in the tables; None if they have none.

    Raises ConfigError if the tables have several and conf pins none.
    """
    ids = sorted(cluster_ids)
    if pinned is None and len(ids) > 1:
        raise ConfigError(
            f"the tables have clusters {', '.join(ids)}: name one with --set kafka.cluster_id=ID"
        )
    return pinned or next(iter(ids), None)
