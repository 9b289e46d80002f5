"""Errors of DuckDB, Delta and Arrow as one line."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from quotaflow.pipelines.errors import QueryError, QuotaflowError, WrongQueryError, nearest

NO_MEMORY = (
    "the query needs more memory than conf allows: narrow it, or allow more with "
    "--set warehouse.query_memory_mb=MIB"
)
_NO_COLUMN = re.compile(r'column "([^"]+)" not found')
_CANDIDATES = re.compile(r"Candidate bindings: (.*)")


@contextmanager
def engine_errors(sql: str) -> Iterator[None]:
    """Turn errors of DuckDB, Delta and Arrow within the block into a QueryError for `sql`."""
    try:
        yield
    except QuotaflowError:
        raise
    except _of_engines() as error:
        raise _reported(error, sql) from None


def _of_engines() -> tuple[type[Exception], ...]:
    """Their classes; called after an error alone, so what reads nothing does not wait for them."""
    import duckdb  # noqa: PLC0415  as above
    from deltalake.exceptions import DeltaError  # noqa: PLC0415
    from pyarrow import ArrowException  # noqa: PLC0415

    return (duckdb.Error, DeltaError, ArrowException, OSError)


def _reported(error: Exception, sql: str) -> QueryError:
    import duckdb  # noqa: PLC0415  as above

    from quotaflow.pipelines.warehouse.query_check import one_line  # noqa: PLC0415

    if isinstance(error, duckdb.OutOfMemoryException):
        return QueryError(NO_MEMORY)
    is_wrong = isinstance(error, duckdb.BinderException | duckdb.CatalogException)
    kind = WrongQueryError if is_wrong else QueryError
    return kind(_no_column(str(error)) or one_line(error) or f": {sql[:80]!r}")


def _no_column(message: str) -> str | None:
    """The error for an unknown column, with the nearest right name."""
    missing = _NO_COLUMN.search(message)
    if missing is None:
        return None
    listed = _CANDIDATES.search(message)
    names = re.findall(r'"([^"]+)"', listed[1]) if listed else []
    return f"no column {missing[1]}{nearest(missing[1], names) if names else ''}"
