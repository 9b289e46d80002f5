"""Converts types of DuckDB that JSON, Python or Spark lack to types that they have."""

from typing import Any

import pyarrow as pa

from quotaflow.udfs.counted import noun


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of an answer: a sum of integers is BIGINT, a decimal DOUBLE, an interval text.

    A time without a zone is in UTC.
    """
    return pa.schema([field.with_type(_plain_type(field.type)) for field in schema])


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch in the types of `plain_schema`. Raises pa.ArrowInvalid for a sum beyond BIGINT."""
    columns = [
        _plain(column, field.type) for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(kind):
        # A sum of BIGINT is a HUGEINT, which Arrow has as a decimal.
        return pa.float64() if kind.scale else pa.int64()
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit, "UTC")
    return pa.string() if pa.types.is_interval(kind) else kind


def _plain(column: Any, kind: pa.DataType) -> Any:
    if pa.types.is_interval(column.type):
        return pa.array([_interval(cell) for cell in column.to_pylist()], kind)
    if column.type == kind:
        return column
    is_time = pa.types.is_timestamp(kind) and pa.types.is_timestamp(column.type)
    return column.view(kind) if is_time else column.cast(kind)


def _interval(cell: Any) -> str | None:
    """An interval as DuckDB prints it: 1 month 2 days 03:04:05.678."""
    if cell is None:
        return None
    parts = [
        f"{number} {noun(abs(number), unit)}"
        for number, unit in ((cell.months, "month"), (cell.days, "day"))
        if number
    ]
    if cell.nanoseconds or not parts:
        sign, us = "-" if cell.nanoseconds < 0 else "", abs(cell.nanoseconds) // 1_000
        minutes, seconds = divmod(us // 1_000_000, 60)
        hours, minutes = divmod(minutes, 60)
        fraction = f".{us % 1_000_000:06}".rstrip("0").rstrip(".")
        parts.append(f"{sign}{hours:02}:{minutes:02}:{seconds:02}{fraction}")
    return " ".join(parts)
