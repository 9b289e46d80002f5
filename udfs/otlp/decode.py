"""OTLP metrics from payload bytes to flat columns, a batch at a time: failure is a value.

The check at ingest and the decoding read in the same way, so a payload is readable exactly when it
decodes. An unreadable payload affects no other.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.schemas.table import LONG, STRING, TIMESTAMP
from quotaflow.schemas.tables.declared import CLIENT_METRICS
from quotaflow.udfs.otlp import batch, columns, context, foreign
from quotaflow.udfs.otlp.arrays import Ints
from quotaflow.udfs.otlp.codecs import Limits, UnreadableError, decompress
from quotaflow.udfs.otlp.payloads import NOT_OTLP, Unreadable
from quotaflow.udfs.otlp.series import series_ids
from quotaflow.udfs.otlp.topic_twins import topic_twins

Batches = Iterator[pa.RecordBatch]
MapBatches = Callable[[Batches], Batches]

_RUN_BYTES = 4 << 20
_BATCH_BYTES = 32 << 20
_ROW_BYTES = 300
_ADDED = ("series_id", "is_topic_twin")

STATUS = pa.schema(
    [
        pa.field("decoded_bytes", LONG),
        pa.field("payload_sha256", STRING),
        pa.field("unreadable_reason", STRING),
        pa.field("unreadable_detail", STRING),
        pa.field("unreadable_metrics", LONG),
        pa.field("broken_metrics", LONG),
        pa.field("unnamed_metrics", LONG),
    ]
)
"""What is known of a payload before its points: decoded_bytes is null if it is unreadable,
payload_sha256 only if it could not be decompressed. unreadable_metrics counts the metrics of a
readable payload whose text is not UTF-8, broken_metrics those whose bytes are none, and
unnamed_metrics those without a name: they have no points."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A run of payloads decoded: the status of each, and the points of the readable ones.

    `parent` is the index, among all payloads given, of the one each point came in.
    """

    status: pa.RecordBatch
    points: pa.RecordBatch
    parent: pa.Array


@dataclass(frozen=True, slots=True)
class _Run:
    """Consecutive payloads decompressed; one that could not be is empty."""

    first: int
    decoded: list[bytes]
    unreadable: Unreadable
    corrupt: frozenset[int]

    def status(self, decoded: batch.DecodedBatch) -> pa.RecordBatch:
        """One row per payload, in order; call it once all unreadable payloads are known."""
        errors = [self._error(i) for i in range(len(self.decoded))]
        rows = list(zip(self.decoded, errors, strict=True))
        return pa.RecordBatch.from_arrays(
            [
                pa.array([None if error else len(data) for data, error in rows], LONG),
                pa.array([self._sha256(i) for i in range(len(rows))], STRING),
                pa.array([error.reason if error else None for _, error in rows], STRING),
                pa.array([error.detail if error else None for _, error in rows], STRING),
                *(
                    pa.array([None if error else each[i] for i, error in enumerate(errors)], LONG)
                    for each in (decoded.left_out, decoded.broken, decoded.unnamed)
                ),
            ],
            schema=STATUS,
        )

    def _error(self, index: int) -> UnreadableError | None:
        error = self.unreadable.get(index)
        if error is None or error.reason != NOT_OTLP:
            return error
        named = foreign.reason(self.decoded[index])
        return UnreadableError(*named) if named else error

    def _sha256(self, index: int) -> str | None:
        if index in self.corrupt:
            return None
        return hashlib.sha256(self.decoded[index]).hexdigest()


def decode(payloads: Any, compressions: Any, limits: Limits) -> Iterator[Decoded]:
    """Decode arrays of payloads and codec names, in runs of bounded size.

    A point comes once per payload (series, start and time), with the columns of
    `columns.SCHEMA`. Time 0 is null; NaN and infinities are kept.
    """
    for run in _runs(payloads, compressions, limits):
        decoded = batch.read(run.decoded, run.unreadable, limits)
        rows = np.flatnonzero(decoded.keep)
        parent = pa.array(run.first + decoded.payload[rows])
        status = run.status(decoded)
        yield Decoded(status, columns.points(decoded, rows), parent)


def check(payloads: Any, compressions: Any, limits: Limits) -> pa.RecordBatch:
    """The status of every payload as `decode` gives it, without making columns of its points."""
    statuses = [STATUS.empty_table()]
    for run in _runs(payloads, compressions, limits):
        decoded = batch.read(run.decoded, run.unreadable, limits)
        status = run.status(decoded)
        statuses.append(pa.Table.from_batches([status]))
    whole = pa.concat_tables(statuses).combine_chunks()
    return pa.RecordBatch.from_arrays(
        [pa.concat_arrays(c.chunks) for c in whole.columns], schema=STATUS
    )


def inspect_pushes(limits: Limits) -> MapBatches:
    """For mapInArrow at ingest: adds the columns of STATUS to batches with `compression`
    and `payload`; existing columns of those names are replaced, others pass through.
    """

    def inspect(batches: Batches) -> Batches:
        for rows in batches:
            status = check(rows.column("payload"), rows.column("compression"), limits)
            kept = {n: rows.column(n) for n in rows.schema.names if n not in STATUS.names}
            yield pa.RecordBatch.from_pydict(
                kept | {name: status.column(name) for name in STATUS.names}
            )

    return inspect


def decode_pushes(limits: Limits) -> MapBatches:
    """For mapInArrow: rows of telemetry_pushes to rows of client_metrics.

    Unreadable payloads, quarantined at ingest, give no rows. A point without a time takes that of
    its push. A point in a push without a client instance takes the client that its resource names.
    Batches are cut by bytes, because payloads expand 10 to 25 times.
    """

    def decode_all(batches: Batches) -> Batches:
        for rows in batches:
            for run in _runs(rows.column("payload"), rows.column("compression"), limits):
                yield from _client_metrics(rows, run, limits)

    return decode_all


def _client_metrics(pushes: pa.RecordBatch, run: _Run, limits: Limits) -> Batches:
    schema = CLIENT_METRICS.arrow
    decoded = batch.read(run.decoded, run.unreadable, limits)
    rows = np.flatnonzero(decoded.keep)
    for part in _parts(rows, decoded.flat_bytes[rows], decoded.payload[rows]):
        points = columns.points(decoded, part)
        parent = pa.array(run.first + decoded.payload[part])
        filled = {name: points.column(name) for name in points.schema.names}
        # Only what the table keeps is repeated for every point: never the payload.
        of_push = [name for name in schema.names if name not in filled and name not in _ADDED]
        filled |= {name: pushes.column(name).take(parent) for name in of_push}
        filled |= context.from_resources(decoded, part, filled)
        filled["series_id"] = series_ids(decoded, part, filled["client_instance_id"])
        push_time = pushes.column("event_time").take(parent).cast(TIMESTAMP)
        filled["event_time"] = pc.coalesce(filled["event_time"], push_time)
        filled["is_topic_twin"] = topic_twins(filled, parent)
        yield pa.RecordBatch.from_arrays([filled[name] for name in schema.names], schema=schema)


def _parts(rows: Ints, flat_bytes: Ints, payload: Ints) -> Iterator[Ints]:
    """The rows cut into runs of about as many bytes, none of them empty.

    A cut is between two payloads, because twins of topics are in one. Only a payload that is larger
    than a run by itself is cut within.
    """
    if not len(rows):
        return
    bytes_before = np.cumsum(flat_bytes + _ROW_BYTES)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(payload)) + 1, [len(rows)]))
    cuts = set[int]()
    for cut in np.flatnonzero(np.diff(bytes_before // _BATCH_BYTES)) + 1:
        after = int(np.searchsorted(starts, cut))
        first, end = int(starts[after - 1]), int(starts[after])
        is_larger = bytes_before[end - 1] - bytes_before[first] > _BATCH_BYTES
        cuts.add(int(cut) if is_larger else end)
    yield from np.split(rows, sorted(cuts - {len(rows)}))


def _runs(payloads: Any, compressions: Any, limits: Limits) -> Iterator[_Run]:
    """Payloads decompressed, in runs up to a bound of bytes; a null payload is an empty one."""
    first, size, decoded, unreadable = 0, 0, list[bytes](), Unreadable()
    pairs = zip(payloads.to_pylist(), compressions.to_pylist(), strict=True)
    for index, (payload, compression) in enumerate(pairs):
        data = b""
        try:
            data = decompress(payload or b"", compression or "", limits)
        except UnreadableError as error:
            unreadable[index - first] = error
        decoded.append(data)
        size += len(data)
        if size > _RUN_BYTES:
            yield _Run(first, decoded, unreadable, frozenset(unreadable))
            first, size, decoded, unreadable = index + 1, 0, [], {}
    if decoded:
        yield _Run(first, decoded, unreadable, frozenset(unreadable))
