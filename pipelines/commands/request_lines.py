"""Parses lines of a request log with the pipeline's own parser, chunk by chunk."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import IO, Any

import pyarrow as pa

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.facts import requests
from quotaflow.pipelines.spark import frames, session
from quotaflow.pipelines.terminal import output, values
from quotaflow.schemas.table import BINARY, INT, LONG, STRING, TIMESTAMP
from quotaflow.schemas.tables.requests import REQUESTS

_CHUNK_BYTES = 32 * 1024 * 1024
_CHUNK_LINES = 20_000
_HEAD_CHARS = 200
_HEADER = pa.struct([pa.field("key", STRING), pa.field("value", BINARY)])
_RECORDS = pa.schema(
    [
        pa.field("key", BINARY),
        pa.field("value", BINARY),
        pa.field("topic", STRING),
        pa.field("partition", INT),
        pa.field("offset", LONG),
        pa.field("timestamp", TIMESTAMP),
        pa.field("headers", pa.list_(_HEADER)),
    ]
)


@dataclass(slots=True)
class Lines:
    """The lines of one file: its rows, and how many lines made no row.

    Each line is treated as a Kafka record of a topic named like the file, with timestamp `now` and
    the line number as its offset.
    """

    conf: Conf
    topic: str
    now: datetime
    rows_made: int = 0
    unreadable: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def rows(self, content: IO[bytes]) -> Iterator[dict[str, Any]]:
        """Rows of `requests` in line order; unreadable lines are reported on stderr."""
        spark = session.get(session.short_lived(self.conf.spark), output.note)
        cluster_id = self.conf.kafka.cluster_id or ""
        for chunk in _chunks(content, self.conf.ingest.max_line_bytes):
            records = frames.from_arrow(spark, self._records(chunk))
            parsed = requests.parse(records, self.conf.ingest, cluster_id).orderBy("offset")
            kept = [*REQUESTS.column_names, "reason", "left_out", "text"]
            for row in values.rows(parsed.select(kept).toArrow().to_batches()):
                if self._is_kept(row.pop("reason"), row.pop("left_out"), row.pop("text"), row):
                    yield row

    def summary(self) -> str:
        """How many lines became rows, were unreadable, and were left out."""
        left_out = ", ".join(f"{n} {reason}" for reason, n in sorted(self.left_out.items()))
        total = self.rows_made + self.unreadable + self.left_out.total()
        return (
            f"{total} lines: {self.rows_made} rows, {self.unreadable} unreadable, "
            f"{self.left_out.total()} left out{f' ({left_out})' if left_out else ''}"
        )

    def _is_kept(
        self, reason: str | None, left_out: str | None, text: str | None, row: dict[str, Any]
    ) -> bool:
        if reason is not None:
            self.unreadable += 1
            head = (text or "")[:_HEAD_CHARS]
            bad = {"line": row["source_offset"], "reason": reason, "head": head}
            output.note(values.json_line(bad))
        elif left_out is not None:
            self.left_out[left_out] += 1
        else:
            self.rows_made += 1
        return reason is None and left_out is None

    def _records(self, chunk: list[tuple[int, bytes]]) -> pa.Table:
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
        return pa.Table.from_pydict(columns, schema=_RECORDS)


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
