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
    runs = (pc.run_end_encode(batch.column(name)).run_ends for name in names)
    ends = set().union(*(ends.to_numpy().tolist() for ends in runs))
    yield from pairwise([0, *sorted(ends)])
