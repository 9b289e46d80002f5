"""What a Spark task runs to make facts of the records of a topic."""

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from quotaflow.schemas.table import BINARY, STRING, TIMESTAMP
from quotaflow.udfs.facts.facts import FactSource, Outcome
from quotaflow.udfs.table_files import FILE, TableFile, Target

Batches = Iterator[pa.RecordBatch]

COUNT = pa.schema(
    [
        pa.field("outcome", STRING),
        pa.field("reason", STRING),
        pa.field("newest", TIMESTAMP),
    ]
)
FILES = pa.schema([*FILE, *COUNT])
"""What a task that writes files returns: a row per file, and a row per outcome with its `table` and
number of `rows`. `newest` is the newest record time, in rows of the outcome `in`."""
PACKED = pa.schema(
    [*(FILE.field(name) for name in ("table", "rows")), *COUNT, pa.field("stream", BINARY)]
)
"""What a task that returns rows returns: Arrow streams of a table's rows, and a row per outcome."""

_BATCH_ROWS, _BATCH_BYTES = 32_768, 32 << 20


def to_files(source: FactSource, targets: Sequence[Target]) -> Callable[[Batches], Batches]:
    """A function for mapInArrow: records in, FILES out; each table's rows are in one new file."""

    def run(batches: Batches) -> Batches:
        counts = _Counts()
        with ExitStack() as stack:
            files = {target.name: stack.enter_context(TableFile(target)) for target in targets}
            for tables in _facts(source, batches, counts):
                for name, rows in tables.items():
                    files[name].write(rows)
        rows = [row for file in files.values() if (row := file.described()) is not None]
        yield pa.RecordBatch.from_pylist([*rows, *counts.rows()], schema=FILES)

    return run


def to_rows(source: FactSource) -> Callable[[Batches], Batches]:
    """A function for mapInArrow: records in, PACKED out."""

    def run(batches: Batches) -> Batches:
        counts = _Counts()
        for tables in _facts(source, batches, counts):
            packed = [
                {"table": name, "rows": rows.num_rows, "stream": _stream(rows)}
                for name, rows in tables.items()
                if rows.num_rows
            ]
            yield pa.RecordBatch.from_pylist(packed, schema=PACKED)
        yield pa.RecordBatch.from_pylist(counts.rows(), schema=PACKED)

    return run


def unpacked(batches: Batches) -> Batches:
    """For mapInArrow: PACKED of one table in, its rows out."""
    for batch in batches:
        for stream in batch.column("stream"):
            yield from pa.ipc.open_stream(stream.as_buffer())


def _facts(
    source: FactSource, batches: Batches, counts: "_Counts"
) -> Iterator[Mapping[str, pa.Table]]:
    reader = source.open()
    for records in _gathered(batches):
        facts = reader.read(records, datetime.now(UTC))
        counts.add(facts.counts, facts.newest)
        yield facts.tables


class _Counts:
    """The sum of the counts of a task's batches."""

    def __init__(self) -> None:
        self._rows = Counter[Outcome]()
        self._newest: datetime | None = None

    def add(self, counts: Counter[Outcome], newest: datetime | None) -> None:
        self._rows += counts
        times = [time for time in (self._newest, newest) if time is not None]
        self._newest = max(times, default=None)

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "table": counted.target,
                "rows": rows,
                "outcome": counted.outcome,
                "reason": counted.reason,
                "newest": self._newest if counted.outcome == "in" else None,
            }
            for counted, rows in self._rows.items()
        ]


def _gathered(batches: Iterable[pa.RecordBatch]) -> Batches:
    """The batches, joined while they are small: to plan a query takes as long as many lines do."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if waiting and (rows + batch.num_rows > _BATCH_ROWS or size + batch.nbytes > _BATCH_BYTES):
            yield _joined(waiting)
            waiting, rows, size = [], 0, 0
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
    if rows:
        yield _joined(waiting)


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return whole


def _stream(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()
