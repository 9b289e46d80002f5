"""Every command that reads lines reads them as ingest does: one format has one reader."""

import io
import json
from typing import Any

import pytest

from quotaflow.pipelines.config import Conf, IngestSection, PayloadsSection
from quotaflow.pipelines.doctor import request_log
from quotaflow.pipelines.facts.line_counts import LineCounts
from quotaflow.pipelines.facts.pushes import CapturedPushes
from quotaflow.pipelines.facts.request_lines import Lines
from quotaflow.pipelines.terminal import output

from ...record_batches import RECORD_TIME, parsed
from ..doctor.test_request_log import Record

TOPIC = "log"
MS = int(RECORD_TIME.timestamp() * 1_000)
INGEST = IngestSection(request_log_topic=TOPIC)


def stock(line: str) -> str:
    return f"[2026-11-21 02:00:00,000] DEBUG Completed request:{line} (kafka.request.logger)"


def forms(push: dict[str, Any]) -> dict[str, tuple[str, int | None]]:
    """A line in the forms in which it may come, each with the broker that it names."""
    line = json.dumps(push, separators=(",", ":"))
    header = push["requestHeader"] | {"clientId": 'Completed request:{"broker":7}'}
    odd = json.dumps(push | {"requestHeader": header}, separators=(",", ":"))
    wholes: dict[str, tuple[Any, int | None]] = {
        "envelope": ({"ts": MS, "broker": 3, "r": push}, 3),
        "time last": ({"broker": 3, "r": push, "ts": MS}, 3),
        "id as text": ({"ts": MS, "broker": "3", "r": push}, 3),
        "id as a float": ({"ts": MS, "broker": 3.0, "r": push}, 3),
        "pod": ({"ts": MS, "broker": "cluster-kafka-3", "r": push}, 3),
        "no broker": ({"ts": MS, "broker": -1, "r": push}, None),
        "no time": ({"ts": None, "broker": 3, "r": push}, 3),
        "time as text": ({"ts": str(MS), "broker": 3, "r": push}, 3),
        "time as ISO": ({"ts": "2026-11-21T02:00:00Z", "broker": 3, "r": push}, 3),
        "keys around": ({"host": "b", "ts": MS, "broker": 3, "r": push, "x": 1}, 3),
        "request as text": ({"ts": MS, "broker": 3, "r": line}, 3),
        "Beats": ({"@timestamp": "2026-11-21T02:00:00Z", "message": stock(line)}, None),
        "Fluent Bit": ({"@timestamp": MS / 1_000, "log": stock(line)}, None),
    }
    texts = {name: (json.dumps(whole), broker) for name, (whole, broker) in wholes.items()}
    return texts | {
        "bare": (line, None),
        "stock": (stock(line), None),
        "container": (f"2026-11-21T02:00:00Z stdout F {stock(line)}", None),
        "client id like a line": (odd, None),
        "client id like a line, in a layout": (stock(odd), None),
        "client id like a line, in an envelope": (
            json.dumps({"ts": MS, "broker": 3, "r": json.loads(odd)}),
            3,
        ),
    }


def test_every_reader_reads_each_form_alike(push_lines: list[dict[str, Any]]) -> None:
    push = push_lines[0]
    instance = push["request"]["clientInstanceId"]
    names, texts = zip(*forms(push).items(), strict=True)
    records = [Record(text.encode(), timestamp=MS, topic=TOPIC) for text, _ in texts]
    expected = {name: broker for name, (_, broker) in zip(names, texts, strict=True)}

    rows = parsed([record.value for record in records])
    assert {row["reason"] for row in rows} == {None}
    assert {n: row["broker_id"] for n, row in zip(names, rows, strict=True)} == expected

    sampled = request_log.sampled(records, INGEST)
    brokers = {
        n: None if s.broker == "unknown" else int(s.broker)
        for n, s in zip(names, sampled, strict=True)
    }
    assert brokers == expected

    counts = LineCounts(INGEST.line_options, frozenset({3}), frozenset())
    counts.add(records)
    assert counts.lines == {
        3: list(expected.values()).count(3),
        None: list(expected.values()).count(None),
    }
    assert counts.by_api == {"PUSH_TELEMETRY": len(records)}

    lines = Lines(Conf(), TOPIC, RECORD_TIME, output.note)
    file = io.BytesIO(b"\n".join(record.value or b"" for record in records))
    brokers_of_file = {n: row["broker_id"] for n, row in zip(names, lines.rows(file), strict=True)}
    assert brokers_of_file == expected

    problems: list[str] = []
    bounds = PayloadsSection()
    for record in records:
        pushes = CapturedPushes("c", frozenset({instance}), ("*",), INGEST, bounds, problems.append)
        assert len(list(pushes.rows(record))) == pushes.points > 0
        assert pushes.pushes == 1
    assert problems == []


@pytest.mark.parametrize("text", [b"", b"caf\xe9", b'{"ts":1,"broker":1,"r":{"isFor', b"{}"])
def test_what_ingest_does_not_read_no_command_reads(text: bytes) -> None:
    record = Record(text, timestamp=MS, topic=TOPIC)
    (row,) = parsed([text])
    (line,) = request_log.sampled([record], INGEST)
    counts = LineCounts(INGEST.line_options, frozenset(), frozenset())
    counts.add([record])
    assert row["reason"] == line.reason is not None
    assert counts.unreadable == {row["reason"]: 1}
    lines = Lines(Conf(), TOPIC, RECORD_TIME, output.note)
    assert list(lines.rows(io.BytesIO(text + b"\n"))) == []
    assert lines.unreadable == 1


def test_a_file_in_another_charset_loses_no_line(push_lines: list[dict[str, Any]]) -> None:
    header = push_lines[0]["requestHeader"] | {"clientId": "caf\xe9"}
    text = json.dumps(push_lines[0] | {"requestHeader": header}, ensure_ascii=False)
    lines = Lines(Conf(), TOPIC, RECORD_TIME, output.note)
    file = io.BytesIO(b"\n".join([text.encode("latin-1"), text.encode(), text.encode("utf-16")]))
    assert [row["client_id"] for row in lines.rows(file)] == ["caf\ufffd", "caf\xe9", "caf\xe9"]
    assert lines.unreadable == 0


def test_every_reader_reads_all_lines_of_a_record(push_lines: list[dict[str, Any]]) -> None:
    push = push_lines[0]
    bodies = [{"body": {"stringValue": stock(json.dumps(push))}}] * 2 + [{"body": None}]
    text = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": bodies}]}]})
    record = Record(text.encode(), timestamp=MS, topic=TOPIC)
    assert [line.form for line in request_log.sampled([record], INGEST)] == [
        "wrapped (OTLP logs)", "wrapped (OTLP logs)", "unreadable",
    ]  # fmt: skip
    counts = LineCounts(INGEST.line_options, frozenset(), frozenset())
    counts.add([record])
    assert (counts.lines, counts.bytes.total()) == ({None: 3}, len(text) // 3 * 3)
    lines = Lines(Conf(), TOPIC, RECORD_TIME, output.note)
    assert [row["source_line"] for row in lines.rows(io.BytesIO(text.encode()))] == [0, 1]
    assert lines.unreadable == 1
    instance = push["request"]["clientInstanceId"]
    pushes = CapturedPushes(
        "c", frozenset({instance}), ("*",), INGEST, PayloadsSection(), lambda _: None
    )
    assert len(list(pushes.rows(record))) == pushes.points > 0
    # The same push twice counts once.
    assert pushes.pushes == 1
