"""Parses lines of a request log with the pipeline's own parser, chunk by chunk."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import IO, Any

import pyarrow as pa

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.facts.forward_times import ForwardTimes
from quotaflow.pipelines.terminal import values
from quotaflow.schemas.tables.declared import REQUESTS
from quotaflow.udfs.counted import counted
from quotaflow.udfs.request_log.columns import DOUBTFUL, IMPLAUSIBLE_TIME
from quotaflow.udfs.request_log.parser import LineParser
from quotaflow.udfs.request_log.records import RECORDS

COLUMNS = ["cluster_id", *REQUESTS.column_names[1:]]
"""Columns of the rows."""
_CHUNK_BYTES = 32 * 1024 * 1024
_CHUNK_LINES = 20_000
_HEAD_CHARS = 200


@dataclass(slots=True)
class Lines:
    """The lines of one file: its rows, and how many lines made no row.

    Each line is treated as a Kafka record of a topic named like the file, with timestamp `now` and
    the line number as its offset.
    """

    conf: Conf
    topic: str
    now: datetime
    note: Callable[[str], None]
    rows_made: int = 0
    unreadable: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    doubtful: Counter[str] = field(default_factory=Counter)

    def rows(self, content: IO[bytes]) -> Iterator[dict[str, Any]]:
        """Rows of `requests` in line order; `note` takes a JSON line for each unreadable one."""
        parser = LineParser(self.conf.ingest.line_options)
        skew = timedelta(seconds=self.conf.ingest.max_clock_skew_s)
        times = ForwardTimes(self.now + skew, skew)
        cluster_id = self.conf.kafka.cluster_id or ""
        for chunk in _chunks(content, self.conf.ingest.max_line_bytes):
            parsed = parser.parse(self._records(chunk))
            outcome = ["reason", "detail", "left_out", "stated_time", *DOUBTFUL]
            columns = [*REQUESTS.column_names[1:], *outcome]
            rows = values.rows(times.chosen(parsed.lines).select(columns).to_batches())
            for place, row in zip(parsed.places.tolist(), rows, strict=True):
                if self._is_kept({name: row.pop(name) for name in outcome}, chunk[place][1], row):
                    yield {"cluster_id": cluster_id} | row

    def summary(self) -> str:
        """How many lines became rows, lack a value, were unreadable, and were left out."""
        left_out = _listed(self.left_out)
        doubtful = f" ({_listed(self.doubtful)})" if self.doubtful else ""
        total = self.rows_made + self.unreadable + self.left_out.total()
        return (
            f"{counted(total, 'line')}: {counted(self.rows_made, 'row')}{doubtful}, "
            f"{self.unreadable} unreadable, "
            f"{self.left_out.total()} left out{f' ({left_out})' if left_out else ''}"
        )

    def _is_kept(self, outcome: dict[str, Any], text: bytes, row: dict[str, Any]) -> bool:
        if outcome["reason"] is not None:
            self.unreadable += 1
            head = text[: 4 * _HEAD_CHARS].decode("utf-8", "replace")[:_HEAD_CHARS]
            why = {name: outcome[name] for name in ("reason", "detail") if outcome[name]}
            self.note(values.json_line({"line": row["source_offset"], **why, "head": head}))
            return False
        if outcome["left_out"] is not None:
            self.left_out[outcome["left_out"]] += 1
            return False
        self.rows_made += 1
        # A file may be old: then a time is far from that of the call, and right.
        is_old = outcome["stated_time"] is not None
        names = [name for name in DOUBTFUL if outcome[name]]
        self.doubtful.update(each for each in names if each != IMPLAUSIBLE_TIME or not is_old)
        return True

    def _records(self, chunk: list[tuple[int, bytes]]) -> pa.RecordBatch:
        count = len(chunk)
        columns = {
            "key": [None] * count,
            "value": [line for _, line in chunk],
            "topic": [self.topic] * count,
            "partition": [0] * count,
            "offset": [number for number, _ in chunk],
            "timestamp": [self.now] * count,
            "headers": [None] * count,
        }
        return pa.RecordBatch.from_pydict(columns, schema=RECORDS)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{n} {reason}" for reason, n in sorted(counts.items()))


def _chunks(content: IO[bytes], max_bytes: int) -> Iterator[list[tuple[int, bytes]]]:
    """Numbered lines in chunks of bounded size."""
    numbered = enumerate(_lines(content, max_bytes), start=1)
    while chunk := list(_until(numbered)):
        yield chunk


def _until(numbered: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    size = 0
    for number, line in islice(numbered, _CHUNK_LINES):
        yield number, line
        size += len(line)
        if size > _CHUNK_BYTES:
            return


def _lines(content: IO[bytes], max_bytes: int) -> Iterator[bytes]:
    """Lines without their line ends; a line over the bound is cut just past it."""
    while line := content.readline(max_bytes + 2):
        whole = line.endswith(b"\n")
        yield line.rstrip(b"\r\n")
        while not whole and (rest := content.readline(max_bytes)):
            whole = rest.endswith(b"\n")
