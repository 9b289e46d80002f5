"""Request-log lines to rows: the only reader of them, for jobs and for commands.

DuckDB reads the JSON of many lines at once. A line that it cannot read is examined in Python, and
read again in a form that DuckDB can read. A line that makes DuckDB fail is outcome by halving, and
has the reason `reader_failed`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.schemas.table import INT, STRING
from quotaflow.udfs.request_log import columns, records, wrappers
from quotaflow.udfs.request_log.columns import LINES, READ, TELEMETRY
from quotaflow.udfs.request_log.options import LineOptions
from quotaflow.udfs.request_log.reader import Reader


@dataclass(frozen=True, slots=True)
class ParsedRecords:
    """Records as LINES, in their order, and as TELEMETRY, by the place of the record."""

    lines: pa.Table
    telemetry: pa.Table


@dataclass(slots=True)
class LineParser:
    """Reads records of the request log. Use it from one thread."""

    options: LineOptions
    _reader: Reader = field(init=False)

    def __post_init__(self) -> None:
        """Open the database."""
        self._reader = Reader(self.options)

    def parse(self, batch: pa.RecordBatch) -> ParsedRecords:
        """Every record (columns of `records.RECORDS`) as a line. No record affects another."""
        texts = records.numbered_texts(batch, self.options.max_line_bytes)
        outcome = _Outcome()
        self._read(texts, outcome)
        if outcome.rows < texts.num_rows:
            self._read(_unwrapped(texts, outcome), outcome)
        read = pa.concat_tables([READ.empty_table(), *outcome.lines])
        telemetry = pa.concat_tables([TELEMETRY.empty_table(), *outcome.telemetry])
        return ParsedRecords(self._in_order(batch, read, outcome), telemetry)

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

    def _in_order(self, batch: pa.RecordBatch, read: pa.Table, outcome: "_Outcome") -> pa.Table:
        """The lines that were read, and between them those that could not be."""
        at = np.full(batch.num_rows, -1)
        at[read["line"].to_numpy()] = np.arange(read.num_rows)
        if np.array_equal(at, np.arange(batch.num_rows)):
            rows = read
        else:
            rows = read.take(pa.array(at, mask=at < 0))
        missing = np.flatnonzero(at < 0)
        reasons = list(self._reasons(batch, missing.tolist(), outcome))
        given = {
            "source_topic": batch.column("topic"),
            "source_partition": batch.column("partition"),
            "source_offset": batch.column("offset"),
            "record_time": records.plausible(batch.column("timestamp")),
        }
        for name in ("reason", "detail") if len(missing) else ():
            whole = np.full(batch.num_rows, None, object)
            whole[missing] = [reason[name == "detail"] for reason in reasons]
            given[name] = pc.coalesce(rows[name], pa.array(whole, STRING))
        arrays = [(given[f.name] if f.name in given else rows[f.name]).cast(f.type) for f in LINES]
        return pa.Table.from_arrays(arrays, schema=LINES)

    def _reasons(
        self, batch: pa.RecordBatch, lines: list[int], outcome: "_Outcome"
    ) -> Iterator[tuple[str, str | None]]:
        for line in lines:
            value = batch.column("value")[line]
            size = len(value.as_buffer()) if value.is_valid else 0
            if not size:
                yield columns.EMPTY_LINE, None
            elif size > self.options.max_line_bytes:
                yield columns.LINE_TOO_LONG, None
            else:
                yield outcome.failures.get(line, (columns.NOT_A_REQUEST_LINE, None))


@dataclass(slots=True)
class _Outcome:
    """What was read so far, and why lines could not be: the reason and a detail, by line."""

    lines: list[pa.Table] = field(default_factory=list)
    telemetry: list[pa.Table] = field(default_factory=list)
    failures: dict[int, tuple[str, str | None]] = field(default_factory=dict)
    rows: int = 0

    def add(self, lines: pa.Table, telemetry: pa.Table) -> None:
        self.lines.append(lines)
        self.telemetry.append(telemetry)
        self.rows += lines.num_rows


def _unwrapped(texts: pa.Table, outcome: _Outcome) -> pa.Table:
    """The texts that were not read, as envelopes; those that are none are failures."""
    numbers = [lines["line"] for lines in outcome.lines]
    read = pa.chunked_array([chunk for each in numbers for chunk in each.chunks], INT)
    unread = texts.filter(pc.invert(pc.is_in(texts["line"], value_set=read.combine_chunks())))
    envelopes = list[str | None]()
    for line, text in zip(unread["line"].to_pylist(), unread["text"].to_pylist(), strict=True):
        envelope = None
        if line not in outcome.failures:
            try:
                envelope = wrappers.unwrap(text).envelope()
            except wrappers.NoRequestError as error:
                outcome.failures[line] = (error.reason, error.detail)
        envelopes.append(envelope)
    forms = pa.repeat(pa.scalar(columns.WRAPPED), unread.num_rows)
    repaired = unread.set_column(1, "text", pa.array(envelopes, STRING)).set_column(
        2, "form", forms
    )
    return repaired.filter(pc.is_valid(repaired["text"]))
