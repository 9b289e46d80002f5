"""How the value of a record becomes lines: the list of framings that shippers use.

| framing | written by |
| --- | --- |
| a text, or one JSON value | brokers, and shippers that send a line a record |
| OTLP logs, as protobuf or JSON | OpenTelemetry's Collector |
| a JSON list | Datadog, Fluent Bit's `json` over HTTP, Vector's batches |
| JSON values in a row: NDJSON, concatenated, with commas, RFC 7464 | Logstash, \
Splunk HEC, Firehose, JsonLayout with `complete` |
| a list in a field | `BATCHES` |
| lines of text | tools that send a part of a file |

Batches may be in a list or in a row, but not in one another.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from quotaflow.udfs.request_log import json_values, otlp_logs, shipper_records
from quotaflow.udfs.request_log.line_search import COMPLETED, REST, lines_of

MOST_LINES = 10_000
"""Lines that one record may have."""

JSON_LIST, JSON_ROW, TEXT_LINES = "JSON list", "JSON values in a row", "lines of text"
BATCHES = {
    "logEvents": shipper_records.CLOUDWATCH,
    "records": "batch of records",
    "streams": "Loki",
    "metrics": "Telegraf",
    "events": "batch of events",
    "entries": "batch of entries",
    "logs": "batch of logs",
    "messages": "batch of messages",
}
"""Fields in which shippers put a list of records, and the name of such a batch."""
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_BEGINNING = re.compile(r'\[?\{|"(?:[^"\\]|\\.)*"\s*\Z')


@dataclass(frozen=True, slots=True)
class Unit:
    """A line of a record: a text or an object, and the records around it."""

    node: Any
    wrapper: str | None = None
    around: tuple[Mapping[str, Any], ...] = ()


def units(value: bytes, text: str) -> Iterator[Unit]:
    """The lines of a value, which `text` is as text. Raises RecursionError for deep JSON."""
    if value.startswith(_UTF_16):
        text = value.decode("utf-16", "replace")
    text = text.strip(json_values.EDGES)
    if value.startswith(b"\n") and (logs := otlp_logs.parsed(value)) is not None:
        yield from _of_otlp(logs)
        return
    values = _values(text)
    if len(values) > 1:
        for each in values:
            yield from _of_value(each, JSON_ROW)
    elif values and isinstance(values[0], dict):
        yield from _of_object(values[0], None)
    elif values and isinstance(values[0], list) and any(map(_is_record, values[0])):
        for each in values[0]:
            yield from _of_value(each, JSON_LIST)
    elif not values and (lines := _lines(text)):
        for line in lines:
            whole = json_values.whole_value(line)
            yield from _of_value(line if whole is None else whole, TEXT_LINES)
    else:
        yield Unit(text)


def _values(text: str) -> list[Any]:
    """All values of a text that is nothing but JSON; else none."""
    if not text.startswith(("{", "[", '"', ",", "\x1e")):
        return []
    try:
        values = list(islice(json_values.in_a_row(text), MOST_LINES + 1))
    except ValueError:
        return []
    # Strings in a row may be CSV, which doubles quotes.
    return values if len(values) == 1 or all(isinstance(each, dict) for each in values) else []


def _is_record(value: Any) -> bool:
    return isinstance(value, dict | str)


def _lines(text: str) -> list[str]:
    """The lines of a text with several, if each of them may be of a request; else none.

    A client may write a line end, and a line behind it, into the text of another log.
    """
    if "\n" not in text:
        return []
    lines = [line for line in text.split("\n") if line.strip(json_values.EDGES)]
    starts = [COMPLETED in line or bool(_BEGINNING.match(line)) for line in lines]
    is_all = all(start or REST.search(line) for start, line in zip(starts, lines, strict=True))
    return lines if sum(starts) > 1 and is_all else []


def _of_value(value: Any, framing: str) -> Iterator[Unit]:
    if isinstance(value, dict):
        yield from _of_object(value, framing)
    else:
        yield Unit(value, framing)


def _of_object(whole: Mapping[str, Any], framing: str | None) -> Iterator[Unit]:
    if otlp_logs.is_whole(whole):
        yield from _of_otlp(whole)
    elif field := _batch_of(whole):
        for each in _streamed(whole[field]) if field == "streams" else whole[field]:
            yield Unit(each, BATCHES[field], (whole,))
    else:
        yield Unit(whole, framing and _name(whole, framing))


def _name(record: Mapping[str, Any], framing: str) -> str:
    kind = shipper_records.name(record)
    return framing if kind == shipper_records.OTHER else kind


def _batch_of(whole: Mapping[str, Any]) -> str | None:
    """The field that has a batch of lines: CloudWatch's name says so, others are looked into."""
    if BATCHES.keys().isdisjoint(whole):
        return None
    lists = [field for field in BATCHES if isinstance(whole.get(field), list)]
    if "logEvents" in lists:
        return "logEvents"
    return next((field for field in lists if any(lines_of({"": whole[field]}))), None)


def _streamed(streams: list[Any]) -> Iterator[Any]:
    """Loki's lines: each with its time in ns, in a stream of labels."""
    for stream in streams:
        values = stream.get("values") if isinstance(stream, dict) else None
        for value in values if isinstance(values, list) else ():
            if isinstance(value, list) and len(value) > 1:
                yield {"timestamp": value[0], "line": value[1], "labels": stream.get("stream")}


def _of_otlp(logs: Mapping[str, Any]) -> Iterator[Unit]:
    for record in otlp_logs.records(logs):
        yield Unit(record, shipper_records.OTLP)
