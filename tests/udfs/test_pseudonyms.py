"""What a payload says of its client is hidden, and everything else it says stays."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

from quotaflow.schemas.tables.declared import TELEMETRY_PUSHES
from quotaflow.udfs import pseudonyms
from quotaflow.udfs.otlp import decode
from quotaflow.udfs.otlp.codecs import COMPRESSION_NAMES, Limits, compress, decompress
from quotaflow.udfs.rules.pseudonym import ADDRESS, CLIENT_ID, Pseudonyms

from ..cases import cases
from .otlp.otlp_made import attribute, gauge, payload, point

HIDDEN = Pseudonyms(b"k" * 32, "k1")
UUID = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"
ME, ADDRESS_OF_ME = "ann-laptop", "10.1.2.3"
SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("client_id", "client_address", "compression")),
        pa.field("payload", pa.binary()),
        *(pa.field(name, pa.string()) for name in ("unreadable_reason", "unreadable_detail")),
    ]
)


def hidden(data: bytes | None, codec: str = "none", reason: str | None = None) -> dict[str, Any]:
    row = {
        "client_id": HIDDEN.pseudonym(CLIENT_ID, ME),
        "client_address": HIDDEN.pseudonym(ADDRESS, ADDRESS_OF_ME),
        "compression": codec,
        "payload": data,
        "unreadable_reason": reason,
        "unreadable_detail": ME,
    }
    batch = pa.RecordBatch.from_pylist([row], schema=SCHEMA)
    (batch_out,) = pseudonyms.hide_payloads(HIDDEN, Limits())(iter([batch]))
    assert batch_out.schema == SCHEMA
    return dict(batch_out.to_pylist()[0])


def nested(*texts: str) -> AnyValue:
    tag = KeyValue(key="client_id", value=AnyValue(string_value=texts[0]))
    values = [AnyValue(string_value=text) for text in texts]
    values.append(AnyValue(kvlist_value=KeyValueList(values=[tag])))
    return AnyValue(array_value=ArrayValue(values=values))


NAMED = payload(
    gauge(
        point(
            as_double=1.5,
            attributes=[
                attribute("client_id", string_value=ME),
                attribute("topic", string_value="orders"),
                attribute("group_member_id", string_value=f"{ME}-{UUID}"),
                attribute("note", string_value=ADDRESS_OF_ME),
                KeyValue(key="many", value=nested(ME, "b")),
            ],
        ),
        name="m",
    ),
    resource=[
        attribute("connection_id", string_value=f"b:9092-{ADDRESS_OF_ME}:5-0-1"),
        attribute("client_source_address", string_value=ADDRESS_OF_ME),
    ],
)
# A field of a number that no OTLP message has, with the name of the client.
UNKNOWN = b"\xfa\x3e" + bytes([len(ME)]) + ME.encode()


@pytest.mark.parametrize("codec", COMPRESSION_NAMES)
def test_a_payload_keeps_its_points_and_loses_its_client(codec: str) -> None:
    row = hidden(compress(NAMED + UNKNOWN, codec), codec)
    assert (row["compression"], row["unreadable_reason"]) == (codec, None)
    kept = decompress(row["payload"], codec, Limits())
    assert ME.encode() not in kept
    assert ADDRESS_OF_ME.encode() not in kept
    (before,), (after,) = points(NAMED), points(kept)
    assert (after["metric"], after["value"]) == (before["metric"], before["value"])
    assert after["attributes"]["topic"] == "orders"
    assert after["attributes"]["client_id"] == HIDDEN.pseudonym(CLIENT_ID, ME)
    assert after["attributes"]["group_member_id"] == f"{HIDDEN.pseudonym(CLIENT_ID, ME)}-{UUID}"
    assert after["attributes"]["note"] == HIDDEN.pseudonym(ADDRESS, ADDRESS_OF_ME)


def points(data: bytes) -> list[dict[str, Any]]:
    (decoded,) = decode.decode(pa.array([data]), pa.array(["none"]), Limits())
    rows: list[dict[str, Any]] = decoded.points.to_pylist(maps_as_pydicts="strict")
    return rows


@cases(
    ("data", "reason", "expected"),
    ("unreadable", b"\xff ann-laptop", "not_otlp", (None, "not_otlp")),
    ("none", None, None, (None, None)),
    ("empty", b"", None, (b"", None)),
    ("readable to another reader alone", b"\xff ann-laptop", None, (None, pseudonyms.UNHIDDEN)),
)
def test_what_cannot_be_searched_is_not_kept(
    data: bytes | None, reason: str | None, expected: tuple[bytes | None, str | None]
) -> None:
    row = hidden(data, reason=reason)
    assert (row["payload"], row["unreadable_reason"]) == expected
    assert row["unreadable_detail"] is None


def test_a_metric_whose_text_is_not_utf8_is_not_kept() -> None:
    bad = payload(gauge(point(), name="bad"), gauge(point(), name="good")).replace(
        b"bad", b"\xff" * 3
    )
    row = hidden(bad)
    assert (row["payload"], row["unreadable_reason"]) == (
        payload(gauge(point(), name="good")),
        None,
    )


def test_real_payloads_lose_nothing_else(golden: Path) -> None:
    files = sorted((golden / "otlp").glob("*.data.bin"))
    for file in files:
        data = file.read_bytes()
        kept = hidden(data)["payload"]
        # NaN equals nothing, but for its text.
        before, after = ([repr(_apart(row)) for row in points(each)] for each in (data, kept))
        assert after == before, file.name
    assert len(files) == 4


def _apart(row: dict[str, Any]) -> dict[str, Any]:
    """A point but for what names its client."""
    of_client = {"resource", "member_id", "scope_name"}
    return {name: row[name] for name in row if name not in of_client}


@pytest.mark.parametrize("client_id", ["rdk-cons-carol", "rdk-idem-alice"])
def test_librdkafka_s_scope_loses_its_client(golden: Path, client_id: str) -> None:
    data = (golden / "otlp" / f"{client_id}.data.bin").read_bytes()
    assert client_id.encode() in data
    payload = hidden(data)["payload"]
    assert client_id.encode() not in payload
    (scope,) = {row["scope_name"].partition("#")[0] for row in points(payload)}
    assert scope == HIDDEN.pseudonym(CLIENT_ID, client_id)


def test_columns_are_hidden_each_by_its_own_rule() -> None:
    names = ["client_id", "client_address", "connection_id", "body", "topic"]
    row = [ME, ADDRESS_OF_ME, f"b:1-{ADDRESS_OF_ME}:5-0-1", json.dumps({"a": ME}), ME]
    batch = pa.RecordBatch.from_pylist(
        [dict(zip(names, row, strict=True)), dict.fromkeys(names)],
        schema=pa.schema([pa.field(name, pa.string()) for name in names]),
    )
    (batch_out,) = pseudonyms.hide_columns(HIDDEN)(iter([batch]))
    first, second = batch_out.to_pylist()
    here = HIDDEN.pseudonym(ADDRESS, ADDRESS_OF_ME)
    assert list(first.values()) == [
        HIDDEN.pseudonym(CLIENT_ID, ME),
        here,
        f"b:1-{here}:5-0-1",
        json.dumps({"a": HIDDEN.pseudonym(CLIENT_ID, ME)}, separators=(",", ":")),
        ME,
    ]
    assert set(second.values()) == {None}


def test_a_hash_of_what_came_stays_what_pushes_are_known_by() -> None:
    status = decode.check(pa.array([NAMED]), pa.array(["none"]), Limits())
    assert status.column("payload_sha256").to_pylist() == [hashlib.sha256(NAMED).hexdigest()]
    assert "payload_sha256" in TELEMETRY_PUSHES.column_names
