"""Runs of equal keys in Arrow batches that are sorted by key."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

Key = tuple[object, ...]


def key_at(batch: pa.RecordBatch, names: Sequence[str], row: int) -> Key:
    """The key of one row."""
    return tuple(batch.column(name)[row].as_py() for name in names)


def key_runs(batch: pa.RecordBatch, names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """First row and row after the last of each run of rows with equal keys, in order."""
    if batch.num_rows == 0:
        return
    ends = {batch.num_rows}
    for name in names:
        ends.update(*map(_run_ends, _comparable(batch.column(name))))
    yield from pairwise([0, *sorted(ends)])


def _comparable(column: pa.Array) -> list[pa.Array]:
    """Columns without nulls that differ where this one differs.

    run_end_encode compares what the buffer has in the place of a null, which may be anything.
    """
    if not column.null_count:
        return [column]
    if column.null_count == len(column):
        return []
    first = pc.drop_null(column)[0]
    return [column.is_valid(), pc.fill_null(column, first)]


def _run_ends(column: pa.Array) -> list[int]:
    ends: list[int] = pc.run_end_encode(column).run_ends.to_numpy().tolist()
    return ends
