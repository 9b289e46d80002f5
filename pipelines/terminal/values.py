"""Cells of Arrow batches as plain values: valid JSON for any input of a client, and safe text."""

import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from quotaflow.pipelines.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

Plain = Callable[[Any], Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_HASHES = frozenset(["series_id"])
"""Columns of hashes: text in each row, so that a reader sees one type."""
_LARGEST_EXACT = 2**53 - 1
"""The largest integer that a double has exactly (RFC 8259, section 6)."""
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def rows(batches: Iterable["pa.RecordBatch"]) -> Iterator[dict[str, Any]]:
    """Rows as objects of JSON's own types: times ISO in UTC, bytes base64, NaN as "NaN".

    Hashes, and other integers that JSON readers would round to doubles, are text.
    """
    for batch in batches:
        names = distinct(batch.schema.names)
        columns = [_column(column, name) for name, column in zip(names, batch.columns, strict=True)]
        for cells in zip(*columns, strict=True):
            yield dict(zip(names, cells, strict=True))


def distinct(names: list[str]) -> list[str]:
    """The names as given. Raises ConfigError if two are equal: a row is a JSON object."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"two columns are named {twice[0]}: rename one with AS")
    return names


def plain(cell: Any) -> Any:
    """A Python value as one of JSON's own types, as `rows` has those of Arrow."""
    if isinstance(cell, datetime):
        return iso((cell - _EPOCH) // timedelta(microseconds=1), "us")
    if isinstance(cell, float):
        return _number(cell)
    if isinstance(cell, Mapping):
        return {str(key): plain(value) for key, value in cell.items()}
    if isinstance(cell, list | tuple):
        return [plain(value) for value in cell]
    return _scalar(cell)


def json_line(row: dict[str, Any]) -> str:
    """A row as one line of ASCII JSON, so that no byte of it can control a terminal."""
    return json.dumps(row, allow_nan=False, separators=(",", ":"))


def text(cell: Any) -> str:
    """A cell as text: nested values as JSON, control characters escaped."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, list | dict):
        return visible(json.dumps(cell, allow_nan=False, ensure_ascii=False))
    return visible(str(cell))


def csv_cell(cell: Any) -> str:
    """A cell for CSV: as `text`; a formula of a spreadsheet gets a leading '."""
    shown = text(cell)
    return f"'{shown}" if isinstance(cell, str) and shown.startswith(_FORMULA_STARTS) else shown


def visible(content: str) -> str:
    """Escape what does not print (control characters, ANSI, bidi overrides) as Python does."""
    if content.isprintable():
        return content
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in content)


def iso(moment: int, unit: str) -> str:
    """A count of units since 1970 as ISO time in UTC; years out of Python's range stay a number."""
    us = moment * 10**6 // _PER_SECOND[unit]
    try:
        time = _EPOCH + timedelta(microseconds=us)
    except OverflowError:
        return f"{us} us since 1970"
    return time.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _column(column: Any, name: str) -> list[Any]:
    import pyarrow as pa  # noqa: PLC0415

    raw = pa.array(column) if not isinstance(column, pa.Array) else column
    plain = str if name in _HASHES else _plain(raw.type)
    return [None if cell is None else plain(cell) for cell in _with_counts(raw).to_pylist()]


def _with_counts(column: "pa.Array") -> "pa.Array":
    """The same with times as numbers."""
    if not _has_time(column.type):
        return column
    counted = _counted(column.type)
    # A cast imports pyarrow.compute, which takes a tenth of the time of a short command.
    is_plain = not column.type.num_fields
    return column.view(counted) if is_plain else column.cast(counted)


def _has_time(type_: "pa.DataType") -> bool:
    import pyarrow as pa  # noqa: PLC0415

    fields = (type_.field(index).type for index in range(type_.num_fields))
    return pa.types.is_timestamp(type_) or any(map(_has_time, fields))


def _counted(type_: "pa.DataType") -> "pa.DataType":
    """The type with times as numbers: a hostile clock may be out of the range of Python's times."""
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_timestamp(type_):
        return pa.int64()
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.list_(_counted(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(f.name, _counted(f.type)) for f in type_])
    if pa.types.is_map(type_):
        return pa.map_(type_.key_type, _counted(type_.item_type))
    return type_


def _plain(type_: "pa.DataType") -> Plain:
    """The function that turns a cell of this Arrow type, times as numbers, into JSON's types."""
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_timestamp(type_):
        return lambda moment: iso(moment, type_.unit)
    if pa.types.is_floating(type_):
        return _number
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        item = _optional(_plain(type_.value_type))
        return lambda cell: [item(value) for value in cell]
    if pa.types.is_struct(type_):
        fields = {f.name: _optional(_plain(f.type)) for f in type_}
        return lambda cell: {name: plain(cell[name]) for name, plain in fields.items()}
    if pa.types.is_map(type_):
        value_of = _optional(_plain(type_.item_type))
        return lambda cell: {str(key): value_of(value) for key, value in cell}
    return _scalar


def _optional(plain: Plain) -> Plain:
    return lambda cell: None if cell is None else plain(cell)


def _number(cell: float) -> float | str:
    if math.isfinite(cell):
        return cell
    return "NaN" if math.isnan(cell) else ("Infinity" if cell > 0 else "-Infinity")


def _scalar(cell: Any) -> Any:
    if isinstance(cell, bytes):
        return base64.b64encode(cell).decode()
    if isinstance(cell, int) and abs(cell) > _LARGEST_EXACT:
        return str(cell)
    if cell is None or isinstance(cell, str | int | bool):
        return cell
    return cell.isoformat() if isinstance(cell, date) else str(cell)
