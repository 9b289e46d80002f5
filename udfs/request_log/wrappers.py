"""Finds the request in lines that are not as brokers write them, one line at a time.

Most lines do not come here: DuckDB reads envelopes, bare lines and Kafka's own layout. These do:
other keys around an envelope, a layout with text behind the request, a shipper that puts the line
into a field of its own JSON, and all that is no request line.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from quotaflow.udfs.request_log.columns import (
    NOT_A_REQUEST_LINE,
    NOT_JSON,
    OLD_TEXT_FORMAT,
    WRAPPED_LINE,
)

COMPLETED = "Completed request:"
FIELDS = (
    "message",
    "log",
    "event",
    "event.original",
    "short_message",
    "full_message",
    "textPayload",
    "body",
    "body.stringValue",
    "line",
    "msg",
    "MESSAGE",
)
"""Fields in which shippers put a line: Beats, Logstash, Fluent Bit, GELF, Splunk, GCP, OTLP."""
TIMES = ("ts", "@timestamp", "timestamp", "time", "timeUnixNano", "timeMillis", "instant", "date")
"""Fields in which they put its time, the most trustworthy first."""

_HEADER = "requestHeader"
_DEEPEST = 8
_MOST_NODES = 1_000
_PATH_CHARS = 200
_ZONED = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?\s?(?:Z|[+-]\d\d:?\d\d)(?![\d:])"
)
_ZONELESS = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?")


class NoRequestError(ValueError):
    """A text without a request: the reason as a code, and a detail."""

    def __init__(self, reason: str, detail: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Request:
    """A request as JSON, and what is said around it: its time and its broker."""

    fields: Mapping[str, Any]
    time: Any = None
    broker: Any = None

    def envelope(self) -> str:
        """The envelope as DuckDB reads it."""
        whole = {"ts": self.time, "broker": self.broker, "r": self.fields}
        text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
        # Half of a surrogate pair, which an escape can spell, is no text.
        return text.encode("utf-8", "replace").decode("utf-8")


def unwrap(text: str) -> Request:
    """The request in a text. Raises NoRequestError."""
    try:
        return _unwrap(text.strip("\ufeff\0 \t\r\n"))
    except RecursionError:
        raise NoRequestError(NOT_JSON, "nested too deeply") from None


def time_before(prefix: str) -> str | None:
    """The first time in the text before a request that names its zone, else the first time."""
    time = _ZONED.search(prefix) or _ZONELESS.search(prefix)
    return time[0] if time else None


def _unwrap(text: str) -> Request:
    if text.startswith("{"):
        try:
            whole, end = _object(text)
        except ValueError:
            whole, end = None, 0
        if whole is not None and not text[end:].strip():
            return _of_object(whole)
        # A layout may begin with an object, such as an empty MDC. A request is none of a layout.
        if whole is None or _HEADER in whole or "r" in whole:
            raise NoRequestError(NOT_JSON)
    return _of_layout(text)


def _of_layout(text: str) -> Request:
    """A request behind the text that Kafka's logger writes before it, in any layout."""
    at = text.find(COMPLETED)
    if at < 0:
        raise NoRequestError(NOT_JSON)
    start = at + len(COMPLETED)
    if text.startswith("RequestHeader(", start):
        raise NoRequestError(OLD_TEXT_FORMAT, "brokers write JSON from Kafka 2.8 on")
    try:
        whole, end = _object(text, start)
    except ValueError:
        raise NoRequestError(NOT_JSON) from None
    if COMPLETED + "{" in text[end:]:
        raise NoRequestError(NOT_JSON, "two lines in one record")
    if _HEADER not in whole:
        raise NoRequestError(NOT_A_REQUEST_LINE)
    return Request(whole, time_before(text[:at]))


def _of_object(whole: Mapping[str, Any]) -> Request:
    inner = whole.get("r")
    if isinstance(inner, str):
        inner = _unwrap(inner).fields
    if isinstance(inner, dict) and _HEADER in inner:
        return Request(inner, _time(whole), whole.get("broker"))
    if _HEADER in whole:
        return Request(whole, _time(whole), whole.get("broker"))
    return _of_wrapper(whole)


def _of_wrapper(whole: Mapping[str, Any]) -> Request:
    """The line in a field of a shipper's record."""
    lines = list(_lines(whole))
    if not lines:
        raise NoRequestError(NOT_A_REQUEST_LINE)
    if len(lines) > 1:
        raise NoRequestError(WRAPPED_LINE, f"{len(lines)} lines in one record: {lines[0].path}")
    (line,) = lines
    if not line.is_known:
        raise NoRequestError(WRAPPED_LINE, f"in the field {line.path}")
    request = _unwrap(line.text.strip())
    time = (
        request.time if isinstance(request.time, str) and _ZONED.fullmatch(request.time) else None
    )
    return Request(request.fields, time or _time(line.parent) or request.time, request.broker)


@dataclass(frozen=True, slots=True)
class _Line:
    path: str
    text: str
    parent: Mapping[str, Any]
    is_known: bool


def _lines(whole: Mapping[str, Any]) -> Iterator[_Line]:
    """Texts within a record that hold a request line."""
    pending: list[tuple[str, Mapping[str, Any], Any, int]] = [("", whole, whole, 0)]
    for _ in range(_MOST_NODES):
        if not pending:
            return
        path, parent, node, depth = pending.pop()
        if isinstance(node, str):
            if COMPLETED in node or (node.lstrip().startswith("{") and f'"{_HEADER}"' in node):
                name = ".".join(part for part in path.split(".") if not part.isdecimal())
                is_known = any(name == each or name.endswith(f".{each}") for each in FIELDS)
                yield _Line(path[:_PATH_CHARS], node, parent, is_known)
        elif depth < _DEEPEST and isinstance(node, dict):
            owner = node if any(name in node for name in TIMES) else parent
            pending += [
                (_joined(path, name), owner, each, depth + 1) for name, each in node.items()
            ]
        elif depth < _DEEPEST and isinstance(node, list):
            pending += [(_joined(path, n), parent, each, depth + 1) for n, each in enumerate(node)]


def _joined(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)


def _time(whole: Mapping[str, Any]) -> Any:
    for name in TIMES:
        value = whole.get(name)
        if isinstance(value, dict):  # log4j's JsonLayout
            seconds, nanos = value.get("epochSecond"), value.get("nanoOfSecond", 0)
            if isinstance(seconds, int) and isinstance(nanos, int):
                return seconds * 1_000_000 + nanos // 1_000
        elif isinstance(value, int | float | str) and not isinstance(value, bool):
            return value
    return None


def _object(text: str, start: int = 0) -> tuple[dict[str, Any], int]:
    """The JSON object that begins at a place, and where it ends. Raises ValueError."""
    whole, end = _DECODER.raw_decode(text, start)
    if not isinstance(whole, dict):
        raise ValueError("not an object")  # noqa: TRY004  the caller catches one kind
    return whole, end


def _first_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """As DuckDB reads a repeated key."""
    whole: dict[str, Any] = {}
    for name, value in pairs:
        whole.setdefault(name, value)
    return whole


_DECODER = json.JSONDecoder(object_pairs_hook=_first_of_each)
