"""Checks of the newest records of the request log."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from quotaflow.pipelines.doctor import request_log
from quotaflow.pipelines.doctor.request_log import SampledLine

FINE = {"log bodies": "ok", "clocks of brokers": "ok"}
BODY = {"requestHeader": {"requestApiKey": 3}, "request": {"topics": []}, "response": {}}


@dataclass(frozen=True)
class Record:
    """The parts of a kafka-python record that doctor reads."""

    value: bytes | None
    timestamp: int = 1_000_000
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


def record(content: Any, **others: Any) -> Record:
    return Record((content if isinstance(content, str) else json.dumps(content)).encode(), **others)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(
            record({"ts": 1_000_400, "broker": 1, "r": BODY}),
            SampledLine("envelope", "1", 400, is_whole=True),
            id="our envelope, its clock a little ahead",
        ),
        pytest.param(
            record({"broker": 1, "r": BODY, "ts": "soon"}),
            SampledLine("envelope", "1", None, is_whole=True),
            id="a time that is none",
        ),
        pytest.param(
            record(BODY, key=b"2"),
            SampledLine("bare", "2", None, is_whole=True),
            id="bare, identified by its key",
        ),
        pytest.param(
            record(BODY, headers=(("broker_id", b"3"),), key=b"x"),
            SampledLine("bare", "3", None, is_whole=True),
            id="bare, a header tells",
        ),
        pytest.param(record(BODY), SampledLine("bare", is_whole=True), id="bare, no key"),
        pytest.param(
            record(f"[2026] DEBUG Completed request:{json.dumps(BODY)} (kafka.request.logger)"),
            SampledLine("stock prefix", is_whole=True),
            id="Kafka's own layout",
        ),
        pytest.param(
            record({"r": BODY | {"response": None, "request": None}}),
            SampledLine("envelope"),
            id="no bodies",
        ),
        pytest.param(
            record({"r": {"requestHeader": {}}}), SampledLine("envelope"), id="a header and no more"
        ),
        pytest.param(record("{cut off"), SampledLine("unreadable"), id="no JSON"),
        pytest.param(record({"level": "INFO"}), SampledLine("unreadable"), id="another log"),
        pytest.param(record([1]), SampledLine("unreadable"), id="an array"),
        pytest.param(
            record({"ts": 1, "r": 7}), SampledLine("unreadable"), id="a number for a request"
        ),
        pytest.param(Record(None), SampledLine("unreadable"), id="no value"),
        pytest.param(Record(b"\xff\xfe"), SampledLine("unreadable"), id="no text"),
    ],
)
def test_a_record_is_of_a_form_or_unreadable(line: Record, expected: SampledLine) -> None:
    assert request_log.line(line) == expected


def test_lines_of_a_real_broker_are_read(golden: Path) -> None:
    text = (golden / "lines" / "slice_envelope_n1.jsonl").read_text(encoding="utf-8")
    records = [record(line, timestamp=1_800_000_000_000) for line in text.splitlines()]
    states = {each.subject: each.state for each in request_log.of_records(records, 60)}
    assert states == {"log lines": "ok", "log bodies": "ok", "clocks of brokers": "ok"}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([], {"log lines": "warning"}),
        (["x", "y"], {"log lines": "bad", "log bodies": "ok", "clocks of brokers": "ok"}),
        ([json.dumps(json.dumps(BODY))], {"log lines": "bad"} | FINE),
        (["x", BODY], {"log lines": "warning", "log bodies": "ok", "clocks of brokers": "ok"}),
        ([BODY], {"log lines": "warning", "log bodies": "ok", "clocks of brokers": "ok"}),
        (
            [{"ts": 1_060_000, "broker": 1, "r": BODY}],
            {"log lines": "ok", "log bodies": "ok", "clocks of brokers": "ok"},
        ),
        (
            [{"ts": 1_061_000, "broker": 1, "r": BODY}, {"ts": 1, "broker": 1, "r": BODY}],
            {"log lines": "ok", "log bodies": "ok", "clocks of brokers": "bad"},
        ),
        (
            [{"ts": 1, "broker": 1, "r": {"requestHeader": {}}}],
            {"log lines": "ok", "log bodies": "bad", "clocks of brokers": "ok"},
        ),
    ],
    ids=[
        "none",
        "all unreadable",
        "lines that are strings of JSON",
        "some unreadable",
        "broker unknown",
        "at the bound",
        "past the bound",
        "no bodies",
    ],
)
def test_what_is_found_of_the_newest_lines(records: list[Any], expected: dict[str, str]) -> None:
    findings = request_log.of_records([record(each) for each in records], 60)
    assert {each.subject: each.state for each in findings} == expected
