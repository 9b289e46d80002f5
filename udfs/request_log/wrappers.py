"""Finds the request in records that are not as brokers write them, one record at a time.

Most lines do not come here: DuckDB reads envelopes, bare lines and Kafka's own layout. These do:
other keys around an envelope, a layout with text behind the request, a shipper or a layout that
puts the line into a field of its own JSON, many lines in one record, and all that is no request
line.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from quotaflow.udfs.request_log import formats, framings, otlp_logs, shipper_records
from quotaflow.udfs.request_log.columns import (
    LINES_LOST,
    NOT_A_REQUEST_LINE,
    NOT_JSON,
    OLD_TEXT_FORMAT,
    WRAPPED_LINE,
)
from quotaflow.udfs.request_log.framings import MOST_LINES, Unit
from quotaflow.udfs.request_log.json_values import (
    EDGES,
    object_at,
    where_json_ends,
    whole_value,
)
from quotaflow.udfs.request_log.line_search import COMPLETED, HEADER, REST, Line, lines_of
from quotaflow.udfs.request_log.options import LineOptions
from quotaflow.udfs.request_log.shipper_records import UNNAMED, Origin

_TWO_LINES = "two lines in one record"
_MOST_STRINGS = 4
_NAME_CHARS = 200
_ZONED = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:\s?(?:Z|[+-]\d\d:?\d\d)|[+-]\d\d)(?![\d:])"
)
_ZONELESS = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?")
_CRI = re.compile(r"\d{4}-\S+ (?:stdout|stderr) ([PF])(?::\S*)? ")
_STAMP = r"(?:[A-Z][a-z]{2} [ \d]?\d [\d:]{8}|\d{4}-\S+)"
_HOST = re.compile(
    rf"(?:<\d{{1,3}}>)?(?:\d )?{_STAMP}[ \t](?!stdout |stderr )(?:\{{name=)?([^\s{{}},]+)[\s}},]"
    r"|\{name=([^\s{},]+)[},]"
)
"""A host of syslog, by RFC 5424 or RFC 3164, or of Logstash's `plain`, which prints its object."""
_PREFIX = re.compile(
    r"\ufeff?(?:"
    r"\d{4}-\S+ (?:stdout|stderr) F(?::\S*)? "
    r"|<\d{1,3}>1 (?:\S+ ){5}(?:-|\[[^{}]{0,500}\])? ?\ufeff?(?:@cee: ?)?"
    rf"|(?:<\d{{1,3}}>)?{_STAMP} \S+ [^{{}}:]{{0,100}}: ?(?:@cee: ?)?"
    r")"
)
"""All that a container runtime or syslog writes before a line."""
_PLAIN = re.compile(
    rf"\ufeff?(?:<\d{{1,3}}>)?(?:(?:{_STAMP}[ \t])?(?:\{{name=[^{{}}]{{1,300}}\}}|%\{{host\}})"
    rf"|{_STAMP}[ \t](?!(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b)[^\s{{}}\"]{{1,253}})[ \t]"
)
"""A time and a host, or one of them, before JSON. A level in its place is a layout's."""
_NO_JSON = re.compile(r"\{\s*[^\"}\s]")
_LEVEL = re.compile(r"\b(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b")
_LOSS = {"ts", "broker", "lost"}
_CURE_OF_LOSS = "lines found no room in the broker's queue, or were not delivered: see its log"
"""What a broker's own appender (broker/RequestLog.java) writes where it lost lines."""
_CURE_OF_BATCH = "a batch of lines within a field: ship the batch as the record's value"


class NoRequestError(ValueError):
    """A text without a request: the reason as a code, and a detail."""

    def __init__(self, reason: str, detail: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = None if detail is None else shipper_records.valid(detail)


@dataclass(frozen=True, slots=True)
class Request:
    """A request as JSON, and what is around it: its time and its broker.

    `broker` and `weight` are those of the line itself. `origin` is what is around it says of the
    broker. `wrapper_time` is the time of what is around a line whose own has no zone.
    """

    fields: Mapping[str, Any]
    time: Any = None
    broker: Any = None
    origin: Origin = UNNAMED
    wrapper: str | None = None
    weight: Any = None
    wrapper_time: str | None = None

    def envelope(self) -> str:
        """The envelope as DuckDB reads it. Raises NoRequestError if it is nested too deeply."""
        whole = {"ts": self.time, "broker": self.broker, "r": self.fields}
        if self.weight is not None:
            whole["weight"] = self.weight
        try:
            text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
        except (RecursionError, ValueError):
            raise NoRequestError(NOT_JSON, "nested too deeply") from None
        return shipper_records.valid(text)


Unwrapped = Request | NoRequestError
"""A line of a record: its request, or why there is none."""


def unwrap(value: bytes, text: str, options: LineOptions) -> list[Unwrapped]:
    """The requests in a record, or why there is none: one of each line that the record has.

    `text` is the value as text.
    """
    try:
        _refuse_binary(value)
        units = list(islice(framings.units(value, text), MOST_LINES + 1))
    except (NoRequestError, RecursionError) as error:
        return [_failure(error)]
    if len(units) > MOST_LINES:
        cure = f"over {MOST_LINES} lines in one record: let the shipper send smaller batches"
        return [NoRequestError(WRAPPED_LINE, f"{units[0].wrapper}: {cure}")]
    return [_of_unit(unit, options) for unit in units]


def time_before(prefix: str) -> str | None:
    """The last time in the text before a request that names its zone, else the last time.

    A container runtime or syslog writes its own time before that of the line.
    """
    times = _ZONED.findall(prefix) or _ZONELESS.findall(prefix)
    return times[-1] if times else None


def _refuse_binary(value: bytes) -> None:
    """Raise NoRequestError for values that are compressed, framed, or no text."""
    if cure := formats.compressed(value):
        raise NoRequestError(WRAPPED_LINE, cure)
    # A magic byte and a schema's id, which is not 0: zeros alone are a hole of a sparse file.
    if value.startswith(b"\0\0") and any(value[:5]):
        cure = "Schema Registry frame: write strings, without a schema"
        raise NoRequestError(WRAPPED_LINE, cure)
    if cure := formats.binary(value):
        raise NoRequestError(NOT_JSON, cure)


def _of_unit(unit: Unit, options: LineOptions) -> Request | NoRequestError:
    try:
        if isinstance(unit.node, dict):
            request = _of_object(unit.node, options)
            request = _within(request, unit.around, options)
        else:
            request = _of_text(unit.node if isinstance(unit.node, str) else "", options)
    except (NoRequestError, RecursionError) as error:
        failure = _failure(error, unit.wrapper)
        if failure.reason == NOT_JSON and failure.detail is None and isinstance(unit.node, str):
            return NoRequestError(NOT_JSON, where_json_ends(unit.node.strip(EDGES)))
        return failure
    return replace(request, wrapper=unit.wrapper) if unit.wrapper else request


def _failure(error: Exception, wrapper: str | None = None) -> NoRequestError:
    if not isinstance(error, NoRequestError):
        return NoRequestError(NOT_JSON, "nested too deeply")
    if wrapper and not (error.detail or "").startswith(wrapper):
        if error.reason == NOT_JSON and error.detail is None:
            return NoRequestError(NOT_JSON, shipper_records.cure_of_torn(wrapper))
        return NoRequestError(error.reason, ": ".join(filter(None, (wrapper, error.detail))))
    return error


def _of_text(text: str, options: LineOptions, strings: int = 0) -> Request:
    text = text.strip(EDGES)
    if strings > _MOST_STRINGS:
        raise NoRequestError(NOT_JSON, "nested too deeply")
    if text.startswith(('"', "{", '["', "[{")):
        whole = whole_value(text)
        if isinstance(whole, list) or (isinstance(whole, dict) and otlp_logs.is_whole(whole)):
            raise NoRequestError(WRAPPED_LINE, _CURE_OF_BATCH)
        if isinstance(whole, str):
            request = _of_text(whole, options, strings + 1)
            return replace(request, wrapper=request.wrapper or shipper_records.JSON_STRING)
        if isinstance(whole, dict):
            return _of_object(whole, options, strings)
        if text.startswith("{"):
            _refuse_torn(text)
    return _of_layout(text, options, strings)


def _refuse_torn(text: str) -> None:
    """Raise NoRequestError for a request that is cut or joined.

    A layout may begin with an object or `{key=value}`, the MDC. A request is none of a layout.
    """
    if _NO_JSON.match(text):
        return
    try:
        first, end = object_at(text)
    except ValueError:
        raise _not_json(text) from None
    if HEADER in first or "r" in first:
        raise NoRequestError(NOT_JSON, _TWO_LINES if HEADER in text[end:] else None)


def _not_json(text: str, kind: str | None = None) -> NoRequestError:
    """Why a text is no line: its format has a name, or it is a part of a line of this kind."""
    torn = shipper_records.cure_of_torn(kind) if kind else None
    return NoRequestError(NOT_JSON, formats.of_text(text) or torn)


def _of_layout(text: str, options: LineOptions, strings: int) -> Request:
    """A request behind the text that Kafka's logger or a shipper writes before it."""
    cri = _CRI.match(text)
    if cri and cri[1] == "P":
        raise NoRequestError(NOT_JSON, shipper_records.cure_of_torn(shipper_records.CRI))
    if (inner := _object_behind(text)) is not None:
        prefix = text[: text.find('{"')]
        request = _of_object(inner, options, strings + 1)
        outer = {"time": time_before(prefix), "host": _host(prefix)}
        kind = shipper_records.SYSLOG if _PREFIX.match(prefix) else shipper_records.PLAIN
        kind = shipper_records.CRI if cri else kind
        return replace(_within(request, (outer,), options), wrapper=request.wrapper or kind)
    at = text.find(COMPLETED)
    if at < 0:
        raise _no_line(text, cri is not None)
    start = at + len(COMPLETED)
    if text.startswith("RequestHeader(", start):
        raise NoRequestError(OLD_TEXT_FORMAT, "brokers write JSON from Kafka 2.8 on")
    try:
        whole, end = object_at(text, start)
    except ValueError:
        raise _not_json(text, shipper_records.CRI if cri else None) from None
    if COMPLETED + "{" in text[end:]:
        raise NoRequestError(NOT_JSON, _TWO_LINES)
    if HEADER not in whole:
        raise NoRequestError(NOT_A_REQUEST_LINE)
    prefix = text[:at]
    host = _host(prefix)
    return Request(whole, time_before(prefix), origin=Origin(names=(host,) if host else ()))


def _no_line(text: str, is_cri: bool) -> NoRequestError:
    """Why a text has no request: it is a part of a line, or of another log."""
    if not REST.search(text) and not text.startswith(("{", '"')) and _LEVEL.search(text[:200]):
        return NoRequestError(NOT_A_REQUEST_LINE)
    return _not_json(text, shipper_records.CRI if is_cri else None)


def _object_behind(text: str) -> dict[str, Any] | None:
    """The object behind what a container runtime or syslog writes before a line."""
    at = text.find('{"')
    if at <= 0 or not (_PREFIX.fullmatch(text, 0, at) or _PLAIN.fullmatch(text, 0, at)):
        return None
    try:
        whole, end = object_at(text, at)
    except ValueError:
        return None
    return whole if whole and not text[end:].strip(EDGES) else None


def _host(prefix: str) -> str | None:
    host = _HOST.match(prefix)
    return host[1] or host[2] if host else None


def _of_object(whole: Mapping[str, Any], options: LineOptions, strings: int = 0) -> Request:
    inner = whole.get("r")
    if isinstance(inner, str):
        inner = _of_text(inner, options, strings + 1).fields
    if isinstance(inner, dict) and HEADER in inner:
        return replace(_beside(whole, inner), weight=whole.get("weight"))
    if HEADER in whole:
        return _beside(whole, whole)
    if whole.keys() == _LOSS and all(isinstance(each, int) for each in whole.values()):
        raise NoRequestError(
            LINES_LOST, f"broker {whole['broker']}: {whole['lost']} {_CURE_OF_LOSS}"
        )
    return _of_wrapper(whole, options, strings)


def _beside(whole: Mapping[str, Any], fields: Mapping[str, Any]) -> Request:
    """The request of an object that says its time and broker too."""
    broker = whole.get("broker")
    origin = shipper_records.origin([whole]) if broker is None else UNNAMED
    return Request(fields, shipper_records.time(whole), broker, origin)


def _of_wrapper(whole: Mapping[str, Any], options: LineOptions, strings: int) -> Request:
    """The line in a field of a shipper's record."""
    kind = shipper_records.name(whole)
    unique = {each.text: each for each in lines_of(whole, options.line_field)}
    usual = [each for each in unique.values() if each.is_known]
    lines = [each for each in usual if each.is_named] or usual or list(unique.values())
    if not lines:
        raise NoRequestError(NOT_A_REQUEST_LINE, None if kind == shipper_records.OTHER else kind)
    if not lines[0].is_known:
        cure = "put the line into message, ship it as the record's value, or set ingest.line_field"
        raise NoRequestError(WRAPPED_LINE, f"{kind}: in the field {lines[0].path}: {cure}")
    requests = [_of_line(each, kind, options, strings) for each in lines]
    # Logstash keeps a line in event.original beside message.
    if any(each.fields != requests[0].fields for each in requests):
        raise NoRequestError(
            WRAPPED_LINE,
            f"{kind}: {len(lines)} lines in one record, such as {lines[0].path}: "
            "let the shipper send one line per record",
        )
    return requests[0]


def _of_line(line: Line, kind: str, options: LineOptions, strings: int) -> Request:
    logger = next(filter(None, map(shipper_records.logger, line.around)), None)
    if logger not in (None, shipper_records.REQUEST_LOGGER):
        raise NoRequestError(NOT_A_REQUEST_LINE, f"{kind}: a line of {logger[:_NAME_CHARS]}")
    if any(map(shipper_records.is_part, line.around)):
        runtime = shipper_records.CRI if "stream" in line.around[-1] else kind
        raise NoRequestError(NOT_JSON, shipper_records.cure_of_torn(runtime))
    try:
        if isinstance(line.node, str):
            request = _of_text(line.node, options, strings + 1)
        else:
            request = _of_object(line.node, options, strings + 1)
    except NoRequestError as error:
        raise _failure(error, kind) from None
    return replace(_within(request, line.around, options), wrapper=kind)


def _within(
    request: Request, around: tuple[Mapping[str, Any], ...], options: LineOptions
) -> Request:
    """The request with the time and the broker of what is around it, the innermost first."""
    time, wrapper_time = request.time, request.wrapper_time
    outer = (each for each in map(shipper_records.time, around) if each is not None)
    if time is None or (not options.has_zone and _is_zoneless(time)):
        time = next(outer, time)
    elif wrapper_time is None and _is_zoneless(time):
        zoned = (str(each) for each in outer if not _is_zoneless(each))
        wrapper_time = next(map(shipper_records.valid, zoned), None)
    origin = request.origin
    if origin.broker is None and request.broker is None:
        outer_origin = shipper_records.origin(around)
        origin = Origin(outer_origin.broker, origin.names + outer_origin.names)
    return replace(request, time=time, origin=origin, wrapper_time=wrapper_time)


def _is_zoneless(time: Any) -> bool:
    return isinstance(time, str) and _ZONELESS.fullmatch(time) is not None
