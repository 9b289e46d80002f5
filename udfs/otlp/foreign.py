"""Names what a payload is that is no OTLP as bytes of protobuf: three mistakes are common."""

import binascii
import re

from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

OTLP_JSON, BASE64_TEXT, SCHEMA_REGISTRY_FRAME = REASONS = (
    "otlp_json",
    "base64_text",
    "schema_registry_frame",
)

_JSON = re.compile(rb'\s*\{\s*"resource_?[mM]etrics"\s*:')
# protobuf makes objects of what it parses, so a large payload is not tried.
_MOST_BYTES = 1 << 20
_FRAME_BYTES = 5
_MAGIC_BYTE = 0
# The list of message indexes of a frame of protobuf: [0] is one byte, others a few.
_MOST_INDEX_BYTES = 8


def reason(payload: bytes) -> tuple[str, str] | None:
    """A reason as a code, and a detail; None where the bytes are none of these.

    Call it only for a payload that is not OTLP.
    """
    if len(payload) > _MOST_BYTES:
        return None
    if _JSON.match(payload):
        return OTLP_JSON, "encode as protobuf (otlp_proto), not as JSON"
    if (decoded := _base64(payload)) is not None and _is_metrics(decoded):
        return BASE64_TEXT, "the bytes are base64 of a payload"
    if payload[:1] == bytes([_MAGIC_BYTE]):
        ends = range(_FRAME_BYTES, _FRAME_BYTES + _MOST_INDEX_BYTES + 1)
        if any(_is_metrics(payload[end:]) for end in ends if end < len(payload)):
            return SCHEMA_REGISTRY_FRAME, "a serializer of a schema registry wrote its frame first"
    return None


def _base64(payload: bytes) -> bytes | None:
    try:
        return binascii.a2b_base64(payload.strip(), strict_mode=True)
    except ValueError:
        return None


def _is_metrics(payload: bytes) -> bool:
    try:
        message = MetricsData.FromString(payload)
    except DecodeError:
        return False
    scopes = (scope for resource in message.resource_metrics for scope in resource.scope_metrics)
    return any(metric.name for scope in scopes for metric in scope.metrics)
