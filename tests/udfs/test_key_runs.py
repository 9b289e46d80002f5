"""Runs of equal keys: the same for every content of the buffers below nulls."""

from itertools import groupby

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.key_runs import key_runs

Cells = list[int | None]


def with_residue(cells: Cells) -> pa.Array:
    """The cells, with another number in the place of each null, as engines leave it."""
    numbers = pa.array([at if cell is None else cell for at, cell in enumerate(cells)], pa.int32())
    bits = sum((cell is not None) << at for at, cell in enumerate(cells))
    valid = pa.py_buffer(bits.to_bytes(len(cells) // 8 + 1, "little"))
    return pa.Array.from_buffers(pa.int32(), len(cells), [valid, numbers.buffers()[1]])


@given(st.lists(st.tuples(st.sampled_from([None, 1, 2]), st.sampled_from([None, "a"]))))
def test_runs_are_those_of_the_values(rows: list[tuple[int | None, str | None]]) -> None:
    columns = [
        with_residue([number for number, _ in rows]),
        pa.array([t for _, t in rows], pa.string()),
    ]
    batch = pa.RecordBatch.from_arrays(columns, ["number", "text"])
    sizes = [len(list(run)) for _, run in groupby(rows)]
    runs = list(key_runs(batch, ["number", "text"]))
    assert [end - start for start, end in runs] == sizes
    assert [start for start, _ in runs] == [sum(sizes[:at]) for at in range(len(sizes))]
