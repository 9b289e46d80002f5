"""Payloads that are almost OTLP have a reason that says what they are."""

import base64
import json
from pathlib import Path

import pyarrow as pa
import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from quotaflow.udfs.otlp import decode, foreign
from quotaflow.udfs.otlp.codecs import Limits

from .otlp_made import gauge, payload, point

GOOD = payload(gauge(point(as_double=1.0), name="a"))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (json.dumps(MessageToDict(MetricsData.FromString(GOOD))).encode(), "otlp_json"),
        (base64.b64encode(GOOD), "base64_text"),
        (base64.b64encode(GOOD) + b"\n", "base64_text"),
        (b"\0\0\0\0\x07\0" + GOOD, "schema_registry_frame"),
        (b"\0\0\0\0\x07\x02\x04" + GOOD, "schema_registry_frame"),
        (b'{"level":"INFO"}', None),
        (b"{" * 100_000, None),
        (b"hello world", None),
        (base64.b64encode(b"hello"), None),
        (b"\0\0\0\0\x07\0\xff\xff", None),
        (b"\xff\xff\xff", None),
        (b"\0", None),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_payload_is_named_after_what_it_is(data: bytes, reason: str | None) -> None:
    named = foreign.reason(data)
    assert (named and named[0]) == reason


@pytest.mark.parametrize("name", ["rdk-idem-alice.data.bin", "java-cons-bob.data.bin"])
def test_real_payloads_in_these_forms_are_named(golden: Path, name: str) -> None:
    data = (golden / "otlp" / name).read_bytes()
    named = [foreign.reason(each) for each in (base64.b64encode(data), b"\0\0\0\0\1\0" + data)]
    assert [each and each[0] for each in named] == ["base64_text", "schema_registry_frame"]


def test_the_status_of_a_payload_has_that_reason() -> None:
    payloads = pa.array([GOOD, base64.b64encode(GOOD), b"\xff\xff"], pa.binary())
    status = decode.check(payloads, pa.array(["none"] * 3), Limits())
    assert status.column("unreadable_reason").to_pylist() == [None, "base64_text", "not_otlp"]
