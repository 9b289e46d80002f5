"""FETCH lines between Arrow and the rules: flattened once per batch, and reassembled."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice, repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.schemas.table import INT, LONG, STRING
from quotaflow.schemas.tables.declared import FETCHES
from quotaflow.udfs.rules.fetch_line import FULL_EPOCHS, FetchLine, FollowedLine, SessionState
from quotaflow.udfs.rules.fetch_session import MAX_LIMIT

_Ints = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]
_NO_EPOCH = -1
_NUMBER_BITS = 32


class PartitionCodes:
    """Partitions as small integers, which are hashed and compared faster than names.

    A request names a topic by its name or by its id. Codes mean the same only within one object.
    """

    def __init__(self, *structs: pa.StructArray) -> None:
        """Number the partitions that these arrays name."""
        topics, self._topics = _numbered([each.field("topic") for each in structs])
        ids, self._ids = _numbered([each.field("topic_id") for each in structs])
        names = pa.array(topics * len(self._ids) + ids).dictionary_encode()
        self._names = names.dictionary.to_numpy()
        numbers = np.concatenate([integers(each.field("partition"), -1) for each in structs])
        keys = (integers(names.indices, 0) << _NUMBER_BITS) | (numbers & (2**_NUMBER_BITS - 1))
        encoded = pa.array(keys).dictionary_encode()
        self._keys = encoded.dictionary.to_numpy()
        ends = np.cumsum([len(each) for each in structs])[:-1]
        self.of_structs: list[_Ints] = np.split(integers(encoded.indices, 0), ends)
        """The codes of each array."""

    def structs(
        self, codes: Sequence[Any], struct: pa.StructType, others: Mapping[str, Sequence[int]]
    ) -> pa.StructArray:
        """Structs of partitions from their codes and further fields."""
        keys = self._keys[np.array(codes, dtype=np.int64)]
        topics, ids = np.divmod(self._names[keys >> _NUMBER_BITS], len(self._ids))
        given = {
            "topic": self._topics.take(pa.array(topics)),
            "topic_id": self._ids.take(pa.array(ids)),
            "partition": keys.astype(np.uint32).view(np.int32),
            **others,
        }
        arrays = [pa.array(given[field.name], field.type) for field in struct]
        return pa.StructArray.from_arrays(arrays, fields=list(struct))


class LineColumns:
    """The lines of a batch, and the partitions of all lines in one array.

    Versions of FETCH without sessions leave the columns of sessions null.
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        """Flatten a batch."""
        forgotten, cached = batch.column("forgotten"), batch.column("cached_partitions")
        self.partitions = batch.column("partitions").flatten()
        self.lengths = lengths(batch.column("partitions"))
        self.codes = PartitionCodes(self.partitions, forgotten.flatten(), cached.flatten())
        self.in_request = _flags(self.partitions.field("in_request"))
        self.in_response = _flags(self.partitions.field("in_response"))
        self.requested_counts = _sums(self.in_request, self.lengths)
        self.bytes = integers(self.partitions.field("bytes"), 0)
        self.line_of = np.repeat(np.arange(batch.num_rows), self.lengths)
        self.response_bytes = _sums(np.where(self.in_response, self.bytes, 0), self.lengths)
        self.epochs = integers(batch.column("session_epoch"), _NO_EPOCH)
        limits = integers(batch.column("max_bytes"), -1)
        self.is_filled = (limits > 0) & (self.response_bytes >= limits)
        self.batch = batch

    def requested_limits(self) -> tuple[_Ints, _Ints]:
        """Sum and greatest of the limits of the partitions that each line names; -1: not known."""
        limits = integers(self.partitions.field("partition_max_bytes"), -1)
        is_unknown = self.in_request & ((limits < 0) | (limits > MAX_LIMIT))
        named = np.where(self.in_request & ~is_unknown, limits, 0)
        sums = _sums(named, self.lengths)
        greatest = np.zeros(len(self.lengths), dtype=np.int64)
        np.maximum.at(greatest, self.line_of, named)
        lines = _sums(is_unknown, self.lengths) > 0
        sums[lines] = greatest[lines] = -1
        return sums, greatest

    def full_and_alone(self) -> _Flags:
        """Lines that say all themselves: they name all partitions, and none is starved."""
        is_alone: _Flags = integers(self.batch.column("session"), 0) == 0
        is_alone &= np.isin(self.epochs, FULL_EPOCHS) & ~self.is_filled
        return is_alone

    def lines(self, chosen: _Flags) -> Iterator[FetchLine]:
        """The chosen lines as the rules take them."""
        names = ("event_time", "session_id", "response_session_id", "error_code")
        times, ids, response_ids, errors = (
            integers(self.batch.column(name), 0)[chosen].tolist() for name in names
        )
        fields = zip(
            times,
            ids,
            self.epochs[chosen].tolist(),
            response_ids,
            errors,
            self.is_filled[chosen].tolist(),
            self._requested(chosen),
            self._forgotten(chosen),
            self._answered(chosen),
            strict=True,
        )
        # A named tuple of a tuple without a call of Python code.
        return map(partial(tuple.__new__, FetchLine), fields)

    def _requested(self, chosen: _Flags) -> Iterator[list[Any]]:
        mask = self.in_request & chosen[self.line_of]
        requests = zip(
            self.codes.of_structs[0][mask].tolist(),
            self._column("fetch_offset", mask),
            self._column("partition_max_bytes", mask),
            strict=True,
        )
        return _cut(requests, self.requested_counts[chosen])

    def _answered(self, chosen: _Flags) -> Iterator[list[Any]]:
        mask = self.in_response & chosen[self.line_of]
        responses = zip(
            self.codes.of_structs[0][mask].tolist(),
            self.bytes[mask].tolist(),
            self._end_offsets()[mask].tolist(),
            self._column("error_code", mask, 0),
            strict=True,
        )
        return _cut(responses, _sums(self.in_response, self.lengths)[chosen])

    def _forgotten(self, chosen: _Flags) -> Iterator[list[Any]]:
        counts = lengths(self.batch.column("forgotten"))
        if not counts.any():
            return repeat([], int(chosen.sum()))
        mask = np.repeat(chosen, counts)
        return _cut(iter(self.codes.of_structs[1][mask].tolist()), counts[chosen])

    def cached(self, at_rows: _Ints) -> Iterator[list[Any]]:
        """The cached partitions of these rows, as the rules take them. No other rows have any."""
        lists = self.batch.column("cached_partitions")
        values = lists.flatten()
        names = ("fetch_offset", "partition_max_bytes", "end_offset")
        numbers = (integers(values.field(name), -1).tolist() for name in names)
        codes = self.codes.of_structs[2].tolist()
        return _cut(zip(codes, *numbers, strict=True), lengths(lists)[at_rows])

    def _column(self, name: str, chosen: _Flags, null: int = -1) -> list[int]:
        values: list[int] = integers(self.partitions.field(name), null)[chosen].tolist()
        return values

    def _end_offsets(self) -> _Ints:
        """The offset up to which the client could read each partition."""
        high = integers(self.partitions.field("high_watermark"), -1)
        stable = integers(self.partitions.field("last_stable_offset"), -1)
        committed = integers(self.batch.column("isolation_level"), 0)[self.line_of] == 1
        return np.where(committed & (stable >= 0), stable, high)

    def places(self) -> _Ints:
        """The 0-based place of each partition in its line."""
        starts = np.cumsum(self.lengths) - self.lengths
        places: _Ints = np.arange(len(self.line_of)) - starts[self.line_of]
        return places


class FollowedColumns:
    """What the rules say of the lines of a batch, by row."""

    def __init__(self, lines: LineColumns, rows: Sequence[int], followed: list[FollowedLine]):
        """Take what was followed in these rows. All other lines say all themselves."""
        self._lines = lines
        self._states = np.full(len(lines.lengths), SessionState.FULL, dtype=object)
        self._states[rows] = [one.state for one in followed]
        self._counts = lines.requested_counts.copy()
        self._counts[rows] = [
            -1 if one.requested_count is None else one.requested_count for one in followed
        ]
        self._sums, self._greatest = lines.requested_limits()
        limits = [one.limits or (-1, -1) for one in followed]
        self._sums[rows], self._greatest[rows] = np.array(limits, np.int64).reshape(-1, 2).T
        self._has_positions = np.zeros(len(lines.lengths), dtype=bool)
        self._has_positions[rows] = [one.positions is not None for one in followed]
        positions = chain.from_iterable(one.positions for one in followed if one.positions)
        self._positions = np.fromiter(chain.from_iterable(positions), np.int64).reshape(-1, 3)
        self._starved = [
            (row, one.starved) for row, one in zip(rows, followed, strict=True) if one.starved
        ]

    def columns(self, chosen: _Flags) -> dict[str, pa.Array]:
        """The columns of `fetches` that the rules fill, for the chosen rows."""
        counts = self._counts[chosen]
        return {
            "session_state": pa.array(self._states[chosen], STRING),
            "session_partitions": pa.array(counts, INT, mask=counts < 0),
            "session_max_bytes": _column_of(self._sums[chosen]),
            "session_partition_max_bytes": _column_of(self._greatest[chosen]),
            "response_bytes": pa.array(self._lines.response_bytes[chosen], LONG),
            "partitions": self._fetched(chosen),
            "starved": self._starved_lists(chosen),
        }

    def _fetched(self, chosen: _Flags) -> pa.Array:
        lines = self._lines
        answered = lines.in_response & chosen[lines.line_of]
        line_of = lines.line_of[answered]
        is_placed = lines.in_request[answered] & (self._states == SessionState.FULL)[line_of]
        places = np.where(is_placed, lines.places()[answered], -1)
        offsets = integers(lines.partitions.field("fetch_offset"), -1)[answered]
        limits = integers(lines.partitions.field("partition_max_bytes"), -1)[answered]
        mine = self._has_positions[line_of]
        places[mine], offsets[mine], limits[mine] = self._positions.T
        filled = {
            "request_index": pa.array(places, INT, mask=places < 0),
            "fetch_offset": pa.array(offsets, LONG, mask=offsets < 0),
            "partition_max_bytes": pa.array(limits, LONG, mask=limits < 0),
        }
        mask = pa.array(answered)
        fields = list(FETCHES.element("partitions"))
        arrays = [
            filled[f.name] if f.name in filled else lines.partitions.field(f.name).filter(mask)
            for f in fields
        ]
        counts = _sums(lines.in_response, lines.lengths)[chosen]
        return pa.ListArray.from_arrays(
            offsets_of(counts), pa.StructArray.from_arrays(arrays, fields=fields)
        )

    def _starved_lists(self, chosen: _Flags) -> pa.Array:
        counts = np.zeros(len(chosen), dtype=np.int64)
        starved = [(row, codes) for row, codes in self._starved if chosen[row]]
        counts[[row for row, _ in starved]] = [len(codes) for _, codes in starved]
        codes = list(chain.from_iterable(codes for _, codes in starved))
        values = self._lines.codes.structs(codes, FETCHES.element("starved"), {})
        is_unknown = pa.array(self._counts[chosen] < 0)
        return pa.ListArray.from_arrays(offsets_of(counts[chosen]), values, mask=is_unknown)


def _column_of(numbers: _Ints) -> pa.Array:
    """Numbers of a column, in which -1 means that it is not known."""
    return pa.array(numbers, LONG, mask=numbers < 0)


def integers(column: pa.Array, null: int) -> _Ints:
    """A column of integers or times as integers, with `null` in place of nulls."""
    filled = pc.fill_null(column.cast(LONG), null) if column.null_count else column.cast(LONG)
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.int64)


def _numbered(columns: Sequence[pa.Array]) -> tuple[_Ints, pa.Array]:
    """Texts as indices of distinct ones; null is the first of these."""
    encoded = pa.concat_arrays(columns).dictionary_encode()
    distinct = pa.concat_arrays([pa.nulls(1, STRING), encoded.dictionary])
    return integers(encoded.indices, -1) + 1, distinct


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


def _cut(values: Iterator[Any], lengths: _Ints) -> Iterator[list[Any]]:
    """The values in lists of these lengths, each made when it is read and dropped after it."""
    return (list(islice(values, length)) for length in lengths.tolist())


def offsets_of(lengths: Sequence[int] | _Ints) -> pa.Array:
    """Where lists of these lengths begin and end."""
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), INT)
