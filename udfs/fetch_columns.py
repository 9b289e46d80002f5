"""FETCH lines between Arrow and the rules: flattened once per batch, and reassembled."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, islice, repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.schemas.table import INT, LONG, STRING
from quotaflow.schemas.tables import fetches
from quotaflow.udfs.rules.fetch_line import FetchLine, FollowedLine, SessionState

_Ints = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]
# Topic, topic id, and number: a request names a topic by either of the first two.
Partition = tuple[str | None, str | None, int]
_NO_EPOCH = -1


class LineColumns:
    """The lines of a batch, and the partitions of all lines in one array.

    Versions of FETCH without sessions leave the columns of sessions null.
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        """Flatten a batch."""
        self.partitions = batch.column("partitions").flatten()
        self.lengths = lengths(batch.column("partitions"))
        self.in_request = _flags(self.partitions.field("in_request"))
        self.in_response = _flags(self.partitions.field("in_response"))
        self.bytes = integers(self.partitions.field("bytes"), 0)
        self._line_of = np.repeat(np.arange(batch.num_rows), self.lengths)
        sizes = np.where(self.in_response, self.bytes, 0)
        self.response_bytes = _sums(sizes, self.lengths)
        self._batch = batch

    def __iter__(self) -> Iterator[FetchLine]:
        """Each line as the rules take it."""
        batch, limits = self._batch, integers(self._batch.column("max_bytes"), -1)
        is_filled = (limits > 0) & (self.response_bytes >= limits)
        forgotten = batch.column("forgotten")
        requested, answered = self._requested_and_answered()
        return map(
            FetchLine,
            integers(batch.column("event_time"), 0).tolist(),
            integers(batch.column("session_id"), 0).tolist(),
            integers(batch.column("session_epoch"), _NO_EPOCH).tolist(),
            integers(batch.column("response_session_id"), 0).tolist(),
            integers(batch.column("error_code"), 0).tolist(),
            is_filled.tolist(),
            requested,
            cut(names(forgotten.flatten()), lengths(forgotten)),
            answered,
        )

    def _requested_and_answered(self) -> Iterator[Iterator[list[Any]]]:
        requested, answered = self.in_request, self.in_response
        requests = zip(
            compress(names(self.partitions), requested.tolist()),
            self._column("fetch_offset", requested),
            self._column("partition_max_bytes", requested),
            strict=True,
        )
        responses = zip(
            compress(names(self.partitions), answered.tolist()),
            self.bytes[answered].tolist(),
            self._end_offsets()[answered].tolist(),
            self._column("error_code", answered, 0),
            strict=True,
        )
        yield cut(requests, _sums(requested, self.lengths))
        yield cut(responses, _sums(answered, self.lengths))

    def _column(self, name: str, chosen: _Flags, null: int = -1) -> list[int]:
        values: list[int] = integers(self.partitions.field(name), null)[chosen].tolist()
        return values

    def _end_offsets(self) -> _Ints:
        """The offset up to which the client could read each partition."""
        high = integers(self.partitions.field("high_watermark"), -1)
        stable = integers(self.partitions.field("last_stable_offset"), -1)
        committed = integers(self._batch.column("isolation_level"), 0)[self._line_of] == 1
        return np.where(committed & (stable >= 0), stable, high)

    def places(self) -> _Ints:
        """The 0-based place of each partition in its line."""
        starts = np.cumsum(self.lengths) - self.lengths
        places: _Ints = np.arange(len(self._line_of)) - starts[self._line_of]
        return places

    def of_lines(self, flags: _Flags) -> _Flags:
        """For each partition the flag of its line."""
        of_lines: _Flags = flags[self._line_of]
        return of_lines


def columns(
    lines: LineColumns, chosen: Sequence[int], followed: list[FollowedLine]
) -> dict[str, pa.Array]:
    """The columns of `fetches` that the rules fill, for the chosen lines."""
    is_chosen = np.zeros(len(lines.lengths), dtype=bool)
    is_chosen[chosen] = True
    return {
        "session_state": pa.array([one.state for one in followed], STRING),
        "session_partitions": pa.array([one.requested_count for one in followed], INT),
        "response_bytes": pa.array(lines.response_bytes[is_chosen], LONG),
        "partitions": _fetched(lines, is_chosen, followed),
        "starved": _starved(followed),
    }


def _fetched(lines: LineColumns, is_chosen: _Flags, followed: list[FollowedLine]) -> pa.Array:
    answered = lines.in_response & lines.of_lines(is_chosen)
    is_full, has_positions = np.zeros_like(is_chosen), np.zeros_like(is_chosen)
    is_full[is_chosen] = [one.state is SessionState.FULL for one in followed]
    has_positions[is_chosen] = [one.positions is not None for one in followed]
    places = np.where(lines.in_request & lines.of_lines(is_full), lines.places(), -1)[answered]
    offsets = integers(lines.partitions.field("fetch_offset"), -1)[answered]
    limits = integers(lines.partitions.field("partition_max_bytes"), -1)[answered]
    positions = chain.from_iterable(one.positions for one in followed if one.positions)
    triples = np.fromiter(chain.from_iterable(positions), np.int64).reshape(-1, 3)
    mine = lines.of_lines(has_positions)[answered]
    places[mine], offsets[mine], limits[mine] = triples.T
    filled = {
        "asked_at": pa.array(places, INT, mask=places < 0),
        "fetch_offset": pa.array(offsets, LONG, mask=offsets < 0),
        "partition_max_bytes": pa.array(limits, LONG, mask=limits < 0),
    }
    mask = pa.array(answered)
    fields = list(fetches.FETCHED_PARTITION)
    arrays = [
        filled[f.name] if f.name in filled else lines.partitions.field(f.name).filter(mask)
        for f in fields
    ]
    counts = _sums(lines.in_response, lines.lengths)[is_chosen]
    return pa.ListArray.from_arrays(
        offsets_of(counts), pa.StructArray.from_arrays(arrays, fields=fields)
    )


def _starved(followed: list[FollowedLine]) -> pa.Array:
    keys = list(chain.from_iterable(one.starved for one in followed))
    is_unknown = [one.requested_count is None for one in followed]
    offsets = offsets_of([len(one.starved) for one in followed])
    values = partition_structs(keys, fetches.STARVED_PARTITION, {})
    return pa.ListArray.from_arrays(offsets, values, mask=pa.array(is_unknown))


def partition_structs(
    keys: Sequence[Any], struct: pa.StructType, others: Mapping[str, Sequence[int]]
) -> pa.StructArray:
    """Structs of partitions from their keys and further fields."""
    topics, ids, partitions = zip(*keys, strict=True) if keys else ((), (), ())
    given = {"topic": topics, "topic_id": ids, "partition": partitions, **others}
    arrays = [pa.array(given[field.name], field.type) for field in struct]
    return pa.StructArray.from_arrays(arrays, fields=list(struct))


def integers(column: pa.Array, null: int) -> _Ints:
    """A column of integers or times as integers, with `null` in place of nulls."""
    filled = pc.fill_null(column.cast(LONG), null) if column.null_count else column.cast(LONG)
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.int64)


def names(partitions: pa.StructArray) -> Iterator[Partition]:
    """The key of each partition."""
    texts = (_texts(partitions.field(name)) for name in ("topic", "topic_id"))
    return zip(*texts, integers(partitions.field("partition"), -1).tolist(), strict=False)


def _texts(column: pa.Array) -> Iterable[str | None]:
    """Texts, one object per distinct text, so that its hash is computed once."""
    if column.null_count == len(column):
        return repeat(None)
    encoded = column.dictionary_encode()
    texts = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)
    chosen: list[str | None] = texts[integers(encoded.indices, -1)].tolist()
    return chosen


def _flags(column: pa.Array) -> _Flags:
    return np.asarray(pc.fill_null(column, False).to_numpy(zero_copy_only=False), dtype=bool)


def lengths(lists: pa.ListArray) -> _Ints:
    """How many values each list has."""
    return integers(lists.value_lengths(), 0)


def _sums(values: _Ints | _Flags, lengths: _Ints) -> _Ints:
    """The sum of the values of each run of these lengths."""
    ends = np.cumsum(lengths)
    totals = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    sums: _Ints = totals[ends] - totals[ends - lengths]
    return sums


def cut(values: Iterator[Any], lengths: _Ints) -> Iterator[list[Any]]:
    """The values in lists of these lengths, each made when it is read.

    Many live objects make Python collect garbage: with a whole batch at once that took two fifths
    of the time.
    """
    return (list(islice(values, length)) for length in lengths.tolist())


def offsets_of(lengths: Sequence[int] | _Ints) -> pa.Array:
    """Where lists of these lengths begin and end."""
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), INT)
