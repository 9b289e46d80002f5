"""Rows in Python: a client's clock may send times that Python's datetime does not have."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The year 9999 is 8,029 years off.
_MAX_US = 8_000 * 365 * 86_400 * 10**6
_MAX = timedelta(microseconds=_MAX_US)
_TIMES = {"timestamp", "timestamp with time zone"}
_SAME = {
    *("varchar", "boolean", "date", "blob", "null", "float", "double", "hugeint"),
    *("tinyint", "smallint", "integer", "bigint"),
    *("utinyint", "usmallint", "uinteger", "ubigint"),
}
"""Types of DuckDB that have the same values in Python as by Arrow."""


def rows_of(answer: "pa.Table") -> list[dict[str, Any]]:
    """The rows of a table, each as its values by column.

    Times are in UTC; one out of Python's range is None. For a time with a zone `to_pylist` would
    import pandas: a third of a second, and 60 MB.
    """
    columns = [_values(column) for column in answer.columns]
    names = answer.column_names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: "pa.ChunkedArray") -> list[Any]:
    import pyarrow as pa  # noqa: PLC0415  --help need not wait for it

    if not pa.types.is_timestamp(column.type):
        values: list[Any] = column.to_pylist()
        return values
    return [time_of(us) for us in microseconds(column)]


def microseconds(times: "pa.ChunkedArray") -> list[int | None]:
    """Times as numbers since 1970: Python's datetimes lack some years."""
    import pyarrow as pa  # noqa: PLC0415

    if times.type.unit != "us":
        times = times.cast(pa.timestamp("us", "UTC"), safe=False)
    # Not by a cast: one imports pyarrow.compute, a tenth of the time of a short command.
    return [us for chunk in times.chunks for us in chunk.view(pa.int64()).to_pylist()]


def time_of(us: int | None) -> datetime | None:
    """A time of microseconds since 1970; None for one that Python cannot have."""
    if us is None or abs(us) >= _MAX_US:
        return None
    return _EPOCH + timedelta(microseconds=us)


def own_rows(answer: "DuckDBPyConnection") -> list[dict[str, Any]] | None:
    """What `rows_of` has of an answer of DuckDB, without Arrow, which takes longer for few rows.

    None if a column is of a type of which Arrow has other values.
    """
    names, kinds = zip(*((name, kind) for name, kind, *_ in answer.description), strict=True)
    if not all(map(_is_known, kinds)):
        return None
    columns = [
        column if kind.id in _SAME else [_own(kind, value) for value in column]
        for kind, column in zip(kinds, zip(*answer.fetchall(), strict=True), strict=False)
    ]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _is_known(kind: Any) -> bool:
    if kind.id == "map":
        return all(part.id in _SAME for _, part in kind.children)
    if kind.id in {"list", "struct"}:
        return all(_is_known(part) for _, part in kind.children)
    return kind.id in _SAME | _TIMES


def _own(kind: Any, value: Any) -> Any:
    """The value of a type that DuckDB gives Python, as Arrow does."""
    if value is None or kind.id in _SAME:
        return value
    if kind.id in _TIMES:
        # As text if Python lacks its year.
        time = value.replace(tzinfo=UTC) if isinstance(value, datetime) else None
        return None if time is None or abs(time - _EPOCH) >= _MAX else time
    if kind.id == "map":
        return list(value.items())
    parts = dict(kind.children)
    if kind.id == "list":
        return [_own(parts["child"], each) for each in value]
    return {name: _own(part, value[name]) for name, part in parts.items()}
