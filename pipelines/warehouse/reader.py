"""What reads tables and views: over files, through Spark, or through a SQL warehouse."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from quotaflow.pipelines.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

    from quotaflow.pipelines.warehouse.time_ranges import Since

_T = TypeVar("_T")
_R = TypeVar("_R")

LATE = "stopped after {} s: narrow it, or allow more with --set warehouse.query_timeout_s=SECONDS"
"""The error of a query whose time is over."""


@dataclass(frozen=True, slots=True)
class TableSummary:
    """The size of a table; all None if it does not exist."""

    rows: int | None = None
    last_event_time_us: int | None = None
    size_bytes: int | None = None


class Reader(Protocol):
    """Answers queries over the tables and views of a warehouse.

    A query is DuckDB's SQL. Where another engine runs it, it is translated. A folder's table keeps
    the version that it has when a query first names it, so all queries of one command see the same
    rows. After a write, open another reader.
    """

    @property
    def threads(self) -> int:
        """How many threads may ask at the same time."""
        ...

    def rows(self, sql: str, since: "Since | None" = None) -> list[dict[str, Any]]:
        """All rows of a query that limits their number: with arguments and errors of `query`."""
        ...

    def read(self, sql: str, schema: "pa.Schema") -> "pa.Table":
        """The rows as Arrow, in columns of these names and types."""
        ...

    def query(self, sql: str, since: "Since | None" = None) -> "pa.RecordBatchReader":
        """The rows of one query over tables and views, batch by batch.

        With `since`, its views are about the time from then on. Raises ConfigError for a text that
        is no query or that may not run, and for a table of another schema version, QueryError, and
        NeverMadeError if the query reads a table that does not exist yet.
        """
        ...

    def expect(self, names: Iterable[str]) -> None:
        """Begin to open these tables, and those of views, while the caller goes on."""
        ...

    def gather(self, names: Iterable[str], since: "Since") -> None:
        """Get ready for questions about these tables and views, from a time on.

        Where each question takes a round trip, all tables of few rows come by one.
        """
        ...

    def gather_for(self, queries: Iterable[str]) -> None:
        """Get ready for these queries in the same way. Errors are those of the queries themselves.

        Raises as `query` for a text that may not run.
        """
        ...

    def is_made(self, table: str) -> bool:
        """Whether a table exists."""
        ...

    def with_empty(self, names: frozenset[str]) -> "Reader":
        """The same tables; each of `names` that does not exist has no rows instead of an error."""
        ...

    def types(self, table: str) -> dict[str, str]:
        """The type of each column of the live table, as `ddl.live_types`."""
        ...

    def table_id(self, table: str) -> str:
        """The id of a table in checkpoints of queries. A table made again has another id."""
        ...

    def versions(self) -> dict[str, str]:
        """Each table that exists, with text that is another one after each commit to it.

        Reads what is true now. Raises QueryError if the place of the tables cannot be read.
        """
        ...

    def extents(self, names: Iterable[str]) -> dict[str, TableSummary]:
        """Rows, newest event_time and bytes of the newest version of each table."""
        ...

    def stop(self) -> None:
        """End queries that other threads run, and let no other begin: each is a QueryError."""
        ...


def each(reader: Reader, answer: Callable[[_T], _R], things: Iterable[_T]) -> list[_R]:
    """The answer to each, in order; as many at a time as the reader lets ask."""
    if reader.threads == 1:
        return [answer(thing) for thing in things]
    with ThreadPoolExecutor(reader.threads, "ask") as pool:
        try:
            return list(pool.map(answer, things))
        except KeyboardInterrupt:
            reader.stop()
            raise


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
