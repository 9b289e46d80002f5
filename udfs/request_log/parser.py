"""Request-log lines to rows: the only reader of them, for jobs and for commands.

DuckDB reads the JSON of many lines at once. A record that it cannot read is examined in Python,
which finds its lines, and these are read again in a form that DuckDB can read. A line that makes
DuckDB fail is isolated by halving, and has the reason `reader_failed`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.schemas.table import INT, STRING
from quotaflow.udfs.request_log import columns, records, wrappers
from quotaflow.udfs.request_log.columns import LINES, READ, TELEMETRY
from quotaflow.udfs.request_log.options import LineOptions
from quotaflow.udfs.request_log.reader import Reader

Ints = npt.NDArray[np.int64]
# Not the value: a record of many lines would be repeated for each of them.
_OF_RECORD = ["topic", "partition", "offset", "timestamp"]


@dataclass(frozen=True, slots=True)
class ParsedRecords:
    """Records as LINES, in their order, and as TELEMETRY, whose `line` is the row in LINES.

    `places` has the place of its record in the batch for each line: a record may have several.
    """

    lines: pa.Table
    telemetry: pa.Table
    places: Ints


@dataclass(slots=True)
class LineParser:
    """Reads records of the request log. Use it from one thread."""

    options: LineOptions
    _reader: Reader = field(init=False)

    def __post_init__(self) -> None:
        """Open the database."""
        self._reader = Reader(self.options)

    def parse(self, batch: pa.RecordBatch) -> ParsedRecords:
        """Every record (columns of `records.RECORDS`) as lines. No record affects another."""
        texts = records.numbered_texts(batch, self.options.max_line_bytes)
        outcome = _Outcome(batch.num_rows)
        self._read(texts, outcome)
        if outcome.rows < texts.num_rows:
            self._read(self._unwrapped(batch, texts, outcome), outcome)
        read = pa.concat_tables([READ.empty_table(), *outcome.lines])
        telemetry = pa.concat_tables([TELEMETRY.empty_table(), *outcome.telemetry])
        return self._in_order(batch, read, telemetry, outcome)

    def _read(self, texts: pa.Table, outcome: "_Outcome") -> None:
        for part in records.in_parts(texts):
            self._read_part(part, outcome)

    def _read_part(self, texts: pa.Table, outcome: "_Outcome") -> None:
        try:
            outcome.add(*self._reader.read(texts))
        except duckdb.Error as error:
            # A fatal error leaves the database unusable.
            self._reader = Reader(self.options)
            if texts.num_rows == 1:
                line = texts["line"][0].as_py()
                outcome.failures[line] = (columns.READER_FAILED, type(error).__name__)
                return
            half = texts.num_rows // 2
            self._read_part(texts.slice(0, half), outcome)
            self._read_part(texts.slice(half), outcome)

    def _unwrapped(self, batch: pa.RecordBatch, texts: pa.Table, outcome: "_Outcome") -> pa.Table:
        """The lines of records that were not read, as envelopes; others are failures."""
        numbers = [lines["line"] for lines in outcome.lines]
        read = pa.chunked_array([chunk for each in numbers for chunk in each.chunks], INT)
        unread = texts.filter(pc.invert(pc.is_in(texts["line"], value_set=read.combine_chunks())))
        values = batch.column("value")
        envelopes = _Envelopes()
        for row, (line, text) in enumerate(
            zip(unread["line"].to_pylist(), unread["text"].to_pylist(), strict=True)
        ):
            if line in outcome.failures:
                continue
            units = wrappers.unwrap(values[line].as_py(), text, self.options)
            for number, unit in zip(outcome.numbered(line, len(units)), units, strict=True):
                try:
                    envelopes.add(row, number, unit)
                except wrappers.NoRequestError as error:
                    outcome.failures[number] = (error.reason, error.detail)
        return envelopes.texts(unread, outcome)

    def _in_order(
        self, batch: pa.RecordBatch, read: pa.Table, telemetry: pa.Table, outcome: "_Outcome"
    ) -> ParsedRecords:
        """The lines that were read, and between them those that could not be."""
        numbers, places, source_lines = outcome.in_order()
        at = np.full(outcome.count, -1)
        at[read["line"].to_numpy()] = np.arange(read.num_rows)
        at = at[numbers]
        if np.array_equal(at, np.arange(batch.num_rows)):
            rows = read
        else:
            rows = read.take(pa.array(at, mask=at < 0))
        of_record = batch.select(_OF_RECORD)
        if not outcome.is_one_each:
            of_record = of_record.take(pa.array(places))
        missing = np.flatnonzero(at < 0)
        reasons = list(self._reasons(batch, places[missing], numbers[missing], outcome))
        given = {
            "source_topic": of_record.column("topic"),
            "source_partition": of_record.column("partition"),
            "source_offset": of_record.column("offset"),
            "source_line": source_lines,
            "record_time": records.plausible(of_record.column("timestamp")),
        }
        for name in ("reason", "detail") if len(missing) else ():
            whole = np.full(len(numbers), None, object)
            whole[missing] = [reason[name == "detail"] for reason in reasons]
            given[name] = pc.coalesce(rows[name], pa.array(whole, STRING))
        arrays = [(given[f.name] if f.name in given else rows[f.name]).cast(f.type) for f in LINES]
        lines = pa.Table.from_arrays(arrays, schema=LINES)
        if not outcome.is_one_each:
            row_of = np.full(outcome.count, -1)
            row_of[numbers] = np.arange(len(numbers))
            rows_of = pa.array(row_of[telemetry["line"].to_numpy()], INT)
            telemetry = telemetry.set_column(0, TELEMETRY.field("line"), rows_of)
        return ParsedRecords(lines, telemetry, places)

    def _reasons(
        self, batch: pa.RecordBatch, places: Ints, numbers: Ints, outcome: "_Outcome"
    ) -> Iterator[tuple[str, str | None]]:
        values = batch.column("value")
        for place, number in zip(places.tolist(), numbers.tolist(), strict=True):
            value = values[place]
            size = len(value.as_buffer()) if value.is_valid else 0
            if not size:
                yield columns.EMPTY_LINE, None
            elif size > self.options.max_line_bytes:
                yield columns.LINE_TOO_LONG, None
            else:
                yield outcome.failures.get(number, (columns.NOT_A_REQUEST_LINE, None))


@dataclass(slots=True)
class _Outcome:
    """What was read so far, and why lines could not be: the reason and a detail, by line.

    A line has the number of its record's place. Those of a record with several have numbers behind
    all places.
    """

    records: int
    lines: list[pa.Table] = field(default_factory=list)
    telemetry: list[pa.Table] = field(default_factory=list)
    failures: dict[int, tuple[str, str | None]] = field(default_factory=dict)
    rows: int = 0
    _several: list[tuple[int, int]] = field(default_factory=list)

    def add(self, lines: pa.Table, telemetry: pa.Table) -> None:
        self.lines.append(lines)
        self.telemetry.append(telemetry)
        self.rows += lines.num_rows

    @property
    def count(self) -> int:
        """Numbers that are in use, also those of records whose lines have others."""
        return self.records + len(self._several)

    @property
    def is_one_each(self) -> bool:
        return not self._several

    def numbered(self, place: int, lines: int) -> range:
        """The numbers of the lines of a record."""
        if lines == 1:
            return range(place, place + 1)
        first = self.count
        self._several += [(place, nth) for nth in range(lines)]
        return range(first, first + lines)

    def in_order(self) -> tuple[Ints, Ints, pa.Array]:
        """The numbers of all lines, the place of each one's record, and its line in the record."""
        places = np.arange(self.records)
        if not self._several:
            return places, places, pa.nulls(self.records, INT)
        of_several = np.array([place for place, _ in self._several])
        single = np.setdiff1d(places, of_several)
        nth = np.array([nth for _, nth in self._several])
        numbers = np.concatenate([single, np.arange(self.records, self.count)])
        place = np.concatenate([single, of_several])
        source_line = np.concatenate([np.full(len(single), -1), nth])
        order = np.lexsort((source_line, place))
        listed = source_line[order]
        return numbers[order], place[order], pa.array(listed, INT, mask=listed < 0)

    def source_line(self, number: int) -> int | None:
        return None if number < self.records else self._several[number - self.records][1]


@dataclass(slots=True)
class _Envelopes:
    """Requests that were found in wrappers: the row of the record's text, and what replaces it."""

    rows: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    requests: list[wrappers.Request] = field(default_factory=list)
    envelopes: list[str] = field(default_factory=list)

    def add(self, row: int, number: int, request: wrappers.Unwrapped) -> None:
        """Add a request. Raises NoRequestError for what is none, or cannot be written as JSON."""
        if isinstance(request, wrappers.NoRequestError):
            raise request
        self.envelopes.append(request.envelope())
        self.rows.append(row)
        self.numbers.append(number)
        self.requests.append(request)

    def texts(self, unread: pa.Table, outcome: _Outcome) -> pa.Table:
        """The requests as `records.numbered_texts` has texts, by number."""
        order = np.argsort(np.array(self.numbers, np.int64), kind="stable").tolist()
        requests = [self.requests[i] for i in order]
        numbers = [self.numbers[i] for i in order]
        replaced = {
            "line": pa.array(numbers, INT),
            "text": pa.array([self.envelopes[i] for i in order], STRING),
            "form": pa.array([_form(each) for each in requests], STRING),
            "origin": pa.array([each.origin.broker for each in requests], STRING),
            "names": pa.array([each.origin.names for each in requests], records.NAMES),
            "wrapper_time": pa.array([each.wrapper_time for each in requests], STRING),
            "source_line": pa.array([outcome.source_line(n) for n in numbers], INT),
        }
        # Without the text of the record: a batch of lines would repeat it for each of them.
        of_record = unread.drop_columns(list(replaced))
        kept = of_record.take(pa.array([self.rows[i] for i in order], INT))
        columns_of = replaced | {name: kept[name] for name in kept.column_names}
        return pa.table({name: columns_of[name] for name in unread.column_names})


def _form(request: wrappers.Request) -> str:
    return f"{columns.WRAPPED} ({request.wrapper})" if request.wrapper else columns.WRAPPED
