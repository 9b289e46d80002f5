"""Records of a topic as Arrow, and lines read from them, for tests without Spark."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pyarrow as pa

from quotaflow.pipelines.config import IngestSection
from quotaflow.udfs.request_log.parser import LineParser
from quotaflow.udfs.request_log.records import RECORDS

RECORD_TIME = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)


def record_batch(
    values: Iterable[bytes | None],
    *,
    key: bytes | Sequence[bytes] | None = None,
    headers: Sequence[dict[str, str]] | dict[str, str] | None = None,
    time: datetime | Sequence[datetime | None] | None = RECORD_TIME,
    topic: str = "log",
) -> pa.RecordBatch:
    """Records with these values and numbered offsets; what else is given is of all, or of each.

    A record whose time is None has none, as Kafka's -1.
    """
    listed = list(values)
    keys = key if isinstance(key, list | tuple) else [key] * len(listed)
    times = time if isinstance(time, list | tuple) else [time] * len(listed)
    each = headers if isinstance(headers, list | tuple) else [headers] * len(listed)
    rows = [
        {
            "key": own_key,
            "value": value,
            "topic": topic,
            "partition": 0,
            "offset": offset,
            "timestamp": at,
            "headers": [{"key": k, "value": v.encode()} for k, v in (given or {}).items()],
        }
        for offset, (value, own_key, given, at) in enumerate(
            zip(listed, keys, each, times, strict=True)
        )
    ]
    return pa.RecordBatch.from_pylist(rows, schema=RECORDS)


@cache
def _parser(ingest: str, brokers: tuple[int, ...]) -> LineParser:
    options = IngestSection.model_validate_json(ingest).line_options
    return LineParser(replace(options, brokers=brokers))


def parsed_cases(
    records: Mapping[str, bytes | None], ingest: IngestSection | None = None, **given: Any
) -> dict[str, dict[str, Any]]:
    """The row of each case, whose record is one line: to plan the parser costs more than to run it.

    What is `given` is of all records, or of each.
    """
    return dict(zip(records, parsed(records.values(), ingest, **given), strict=True))


def parsed(
    values: Iterable[bytes | None],
    ingest: IngestSection | None = None,
    *,
    brokers: tuple[int, ...] = (),
    **given: Any,
) -> list[dict[str, Any]]:
    """Every record as a line. `brokers` are those that a snapshot has."""
    parser = _parser((ingest or IngestSection()).model_dump_json(), brokers)
    rows: list[dict[str, Any]] = parser.parse(record_batch(values, **given)).lines.to_pylist()
    return rows
