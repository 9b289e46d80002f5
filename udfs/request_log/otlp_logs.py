"""Logs of OpenTelemetry (OTLP) as plain records: of protobuf, or of its JSON.

A Collector's Kafka exporter writes them with `otlp_proto` and `otlp_json`: many lines in a record.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData

_DEEPEST = 8
_INTEGER = re.compile(r"-?[0-9]{1,19}")


def is_whole(whole: Mapping[str, Any]) -> bool:
    """Whether a JSON object is logs of OTLP."""
    return isinstance(whole.get("resourceLogs", whole.get("resource_logs")), list)


def parsed(value: bytes) -> dict[str, Any] | None:
    """Protobuf as the JSON of OTLP; None for bytes that are something else."""
    try:
        data = LogsData.FromString(value)
    except DecodeError:
        return None
    # Bytes that are no logs may be fields that nobody knows.
    if not any(scope.log_records for each in data.resource_logs for scope in each.scope_logs):
        return None
    return MessageToDict(data)


def records(whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Each log record with its body, attributes, times, and its resource's attributes."""
    for resource_logs in _dicts(_get(whole, "resourceLogs")):
        resource = _attributes(resource_logs.get("resource"))
        for scope_logs in _dicts(_get(resource_logs, "scopeLogs")):
            for record in _dicts(_get(scope_logs, "logRecords")):
                yield {
                    "timeUnixNano": _get(record, "timeUnixNano"),
                    "observedTimeUnixNano": _get(record, "observedTimeUnixNano"),
                    "body": _plain(record.get("body")),
                    "attributes": _attributes(record),
                    "resource": resource,
                }


def _attributes(node: Any) -> dict[str, Any]:
    return _pairs(node.get("attributes"), 0) if isinstance(node, dict) else {}


def _pairs(pairs: Any, depth: int) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for pair in _dicts(pairs):
        plain.setdefault(str(pair.get("key")), _plain(pair.get("value"), depth))
    return plain


def _plain(value: Any, depth: int = 0) -> Any:
    if not isinstance(value, dict) or depth > _DEEPEST:
        return None if isinstance(value, dict | list) else value
    if (whole := _get(value, "intValue")) is not None:
        return int(whole) if _INTEGER.fullmatch(str(whole)) else None
    if (coded := _get(value, "bytesValue")) is not None:
        return _text(coded)
    if isinstance(inner := _get(value, "kvlistValue"), dict):
        return _pairs(inner.get("values"), depth + 1)
    if isinstance(inner := _get(value, "arrayValue"), dict):
        return [_plain(each, depth + 1) for each in _dicts(inner.get("values"))]
    names = ("stringValue", "boolValue", "doubleValue")
    return next((v for v in (_get(value, each) for each in names) if v is not None), None)


def _text(coded: Any) -> str | None:
    try:
        return base64.b64decode(coded).decode("utf-8", "replace")
    except (TypeError, ValueError, binascii.Error):
        return None


def _get(node: Mapping[str, Any], name: str) -> Any:
    """A field by its JSON name, or by its name in protobuf, which JSON may have too."""
    if name in node:
        return node[name]
    return node.get(_name_in_protobuf(name))


@cache
def _name_in_protobuf(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def _dicts(values: Any) -> Iterator[dict[str, Any]]:
    listed = values if isinstance(values, list) else ()
    return (each for each in listed if isinstance(each, dict))
