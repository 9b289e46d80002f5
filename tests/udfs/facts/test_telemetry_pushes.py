"""Pushes from both routes: their rows, and the reasons of payloads that cannot be opened."""

import base64
import hashlib
import json
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import zstandard

from quotaflow.pipelines.config import IngestSection
from quotaflow.schemas.tables.declared import TELEMETRY_PUSHES
from quotaflow.udfs.facts import quarantine, telemetry_pushes
from quotaflow.udfs.facts.facts import Facts
from quotaflow.udfs.facts.receiver import PushLog
from quotaflow.udfs.facts.requests import RequestLog
from quotaflow.udfs.otlp import decode
from quotaflow.udfs.otlp.codecs import Limits

from ...pushes import encoded, pushing
from ...record_batches import RECORD_TIME, record_batch

Lines = list[dict[str, Any]]
Rows = list[dict[str, Any]]


def from_log(values: list[bytes], limits: Limits | None = None) -> Facts:
    log = RequestLog("cluster", IngestSection().line_options, limits or Limits(), None)
    return log.open().read(record_batch(values), RECORD_TIME)


def pushed(facts: Facts) -> Rows:
    return facts.tables["telemetry_pushes"].to_pylist()


def opened(payload: bytes, compression_type: int) -> bytes:
    """The payload decompressed by other libraries than ours."""
    if compression_type == 4:
        return zstandard.ZstdDecompressor().decompressobj().decompress(payload)
    return zlib.decompress(payload, wbits=31) if compression_type == 1 else payload


def test_golden_pushes_are_kept_as_they_came(push_lines: Lines) -> None:
    rows = pushed(from_log([encoded(line) for line in push_lines]))
    assert len(rows) == len(push_lines) > 20
    unreadable = {}
    for line, row in zip(push_lines, rows, strict=True):
        request, error = line["request"], line["response"]["errorCode"]
        payload = base64.b64decode(request["metrics"])
        assert (bytes(row["payload"]), row["wire_bytes"]) == (payload, len(payload))
        assert (row["accepted"], row["error_code"]) == (error == 0, error)
        assert row["terminating"] == request["terminating"]
        assert row["client_instance_id"] == request["clientInstanceId"]
        assert row["subscription_id"] == request["subscriptionId"]
        assert (row["client_id"], row["principal"]) == (
            line["requestHeader"]["clientId"],
            line["principal"],
        )
        assert (row["route"], row["push_interval_ms"]) == ("request_log", None)
        if row["unreadable_reason"]:
            unreadable[error] = (row["compression"], row["unreadable_reason"])
            assert row["decoded_bytes"] is None
            continue
        data = opened(payload, request["compressionType"])
        assert row["decoded_bytes"] == len(data)
        assert row["payload_sha256"] == hashlib.sha256(data).hexdigest()
    # Errors 76 and 87 are the broker's own words for a codec and a payload it could not take.
    assert unreadable == {76: ("id 9", "unknown_codec"), 87: ("zstd", "corrupt_payload")}


def test_one_unreadable_payload_costs_exactly_itself(push_lines: Lines, bomb: bytes) -> None:
    good = push_lines[0]
    data = opened(base64.b64decode(good["request"]["metrics"]), 4)
    sha256 = hashlib.sha256(data).hexdigest()
    truncated = zstandard.compress(data)[:-9]
    flipped = bytearray(zlib.compress(data, wbits=31))
    flipped[len(flipped) // 2] ^= 0xFF
    cases: list[tuple[str, bytes | str, int, str | None]] = [
        ("a good one", data, 0, None),
        ("nothing at all is a legal payload", b"", 4, None),
        ("not base64", "%%%", 4, "bad_base64"),
        ("base64 cut short", "KLUv/QBYhH0A=", 4, "bad_base64"),
        ("another good one", zstandard.compress(data), 4, None),
        ("zeros without end", bomb, 4, "ratio_too_high"),
        ("zeros without end, said to be small", bomb, 0, "not_otlp"),
        ("zstd called gzip", zstandard.compress(data), 1, "corrupt_payload"),
        ("truncated", truncated, 4, "corrupt_payload"),
        ("a flipped byte", bytes(flipped), 1, "corrupt_payload"),
        ("a codec of tomorrow", data, 9, "unknown_codec"),
        ("a negative codec", data, -1, "unknown_codec"),
        ("protobuf of another kind", b"\x08\x01\x12\x03abc", 0, "not_otlp"),
        ("no protobuf", b"\xff\xff\xff", 0, "not_otlp"),
        ("the last good one", zlib.compress(data, wbits=31), 1, None),
    ]
    facts = from_log([pushing(good, payload, codec) for _, payload, codec, _ in cases])
    rows = pushed(facts)
    reasons = [(case[0], row["unreadable_reason"]) for case, row in zip(cases, rows, strict=True)]
    assert reasons == [(case[0], case[3]) for case in cases]
    for (name, payload, _, reason), row in zip(cases, rows, strict=True):
        assert (row["decoded_bytes"] is None) == (reason is not None), name
        if isinstance(payload, bytes):
            assert bytes(row["payload"]) == payload
        if name.endswith("good one"):
            assert (row["payload_sha256"], row["decoded_bytes"]) == (sha256, len(data))
        if reason in {"bad_base64", "ratio_too_high", "corrupt_payload", "unknown_codec"}:
            assert row["payload_sha256"] is None, name
    assert_quarantined(facts.tables["quarantine"], [case for case in cases if case[3]])


def test_text_that_is_not_utf8_costs_its_metric_alone(push_lines: Lines, golden: Path) -> None:
    data = (golden / "otlp" / "rdk-cons-carol.data.bin").read_bytes()
    name = b"consumer.connection.creation.rate"
    assert data.count(name) == 1
    spoiled = data.replace(name, b"\xff" * len(name))
    facts = from_log([pushing(push_lines[0], each, 0) for each in (data, spoiled, b"\xff")])
    rows = [(row["unreadable_reason"], row["unreadable_metrics"]) for row in pushed(facts)]
    assert rows == [(None, 0), (None, 1), ("not_otlp", None)]
    bad = facts.tables["quarantine"].to_pylist()
    assert [(row["source_offset"], row["reason"]) for row in bad] == [
        (1, "metric_not_utf8"),
        (2, "not_otlp"),
    ]
    assert bad[0]["detail"] == "metrics left out because their text is not UTF-8: 1"
    counted = {each.reason: n for each, n in facts.counts.items() if n}
    assert (counted["metric_not_utf8"], counted["not_otlp"]) == (1, 1)
    pushes = iter(facts.tables["telemetry_pushes"].to_batches())
    points = pa.Table.from_batches(decode.decode_pushes(Limits())(pushes))
    assert Counter(points["payload_sha256"].to_pylist()).most_common() == [
        (hashlib.sha256(data).hexdigest(), 19),
        (hashlib.sha256(spoiled).hexdigest(), 18),
    ]


def assert_quarantined(table: pa.Table, cases: list[tuple[str, bytes | str, int, Any]]) -> None:
    rows = table.to_pylist()
    assert [row["reason"] for row in rows] == [case[3] for case in cases]
    for row, (_, payload, _, _) in zip(rows, cases, strict=True):
        assert (row["target"], row["event_time"]) == ("client_metrics", RECORD_TIME)
        if isinstance(payload, bytes):
            assert bytes(row["head"]) == payload[: quarantine.HEAD_BYTES]
            assert row["size_bytes"] == len(payload)
        assert 0 < len(row["detail"]) <= 500


def test_limits_are_the_conf_s(push_lines: Lines) -> None:
    lines = [encoded(line) for line in push_lines[:2]]
    rows = pushed(from_log(lines, Limits(decoded_bytes=1_000)))
    assert [row["unreadable_reason"] for row in rows] == ["payload_too_large"] * 2
    rows = pushed(from_log(lines, Limits(points=3)))
    assert [row["unreadable_reason"] for row in rows] == ["points_over_limit"] * 2


def test_only_pushes_that_requests_keeps(push_lines: Lines) -> None:
    header = push_lines[0]["requestHeader"]
    own = header | {"clientId": "quotaflow-shipper"}
    other = header | {"requestApiKeyName": "METADATA"}
    request = push_lines[0]["request"]
    changes: list[dict[str, Any]] = [
        {"isForwarded": True},
        {"requestHeader": own, "principal": "User:shipper"},
        {"requestHeader": other},
        {"request": request | {"metrics": 5}},
        {"request": request | {"metrics": None}},
    ]
    rows = pushed(from_log([encoded(push_lines[0] | change) for change in changes]))
    reasons = {row["source_offset"]: row["unreadable_reason"] for row in rows}
    assert reasons == {3: "bad_base64", 4: None}


def received(records: list[tuple[bytes, dict[str, str]]], max_bytes: int = 1 << 20) -> Rows:
    values, headers = zip(*records, strict=True)
    log = PushLog("cluster", telemetry_pushes.from_receiver, max_bytes, Limits(), None)
    facts = log.open().read(record_batch(values, headers=headers), RECORD_TIME)
    assert facts.tables["telemetry_pushes"].schema == TELEMETRY_PUSHES.arrow
    return pushed(facts)


def test_the_receiver_s_headers_are_the_context(golden: Path) -> None:
    given = json.loads((golden / "plugin_headers.json").read_text(encoding="utf-8"))
    payload = (golden / "otlp" / "java-cons-bob.data.bin").read_bytes()
    rows = received([(payload, headers) for headers in given])
    assert len(rows) == len(given) == 8
    for row, headers in zip(rows, given, strict=True):
        same = (
            "client_instance_id",
            "principal",
            "client_id",
            "client_software_name",
            "client_software_version",
            "listener",
            "security_protocol",
            "connection_id",
        )
        assert {name: row[name] for name in same} == {name: headers[name] for name in same}
        assert (row["broker_id"], row["client_port"], row["push_interval_ms"]) == (
            int(headers["broker_id"]),
            int(headers["client_source_port"]),
            int(headers["push_interval_ms"]),
        )
        assert row["client_address"] == headers["client_source_address"]
        assert row["terminating"] == (headers["terminating"] == "true")
        assert (row["accepted"], row["error_code"], row["route"]) == (True, None, "receiver")
        assert (row["compression"], row["wire_bytes"]) == ("none", len(payload))
        assert row["payload_sha256"] == hashlib.sha256(payload).hexdigest()
        assert row["event_time"] == RECORD_TIME


def test_records_no_receiver_wrote_are_rows_all_the_same(golden: Path) -> None:
    payload = (golden / "otlp" / "rdk-cons-carol.data.bin").read_bytes()
    hostile = {"broker_id": "many", "client_source_port": "99999999999", "terminating": "perhaps"}
    records = [(payload, {}), (payload, hostile), (b"", {}), (payload, {"client_id": ""})]
    rows = received([*records, (payload * 2, {})], len(payload))
    assert [row["unreadable_reason"] for row in rows] == [None] * 4 + ["payload_too_large"]
    for row in rows[:2]:
        assert (row["broker_id"], row["client_port"], row["terminating"]) == (None, None, None)
    assert rows[3]["client_id"] is None
    assert (rows[4]["payload"], rows[4]["wire_bytes"]) == (None, 2 * len(payload))
    assert (rows[4]["decoded_bytes"], rows[4]["payload_sha256"]) == (None, None)
