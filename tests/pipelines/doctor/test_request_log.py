"""Checks of the newest records of the request log."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from quotaflow.pipelines.config import IngestSection
from quotaflow.pipelines.doctor import request_log
from quotaflow.pipelines.doctor.line_times import SampledLine

from ...cases import cases

FINE = dict.fromkeys(
    ("log bodies", "log times", "log numbers", "record times", "clocks of brokers"), "ok"
)
BODY = {"requestHeader": {"requestApiKey": 3}, "request": {"topics": []}, "response": {}}
MS = 1_795_168_800_000
INGEST = IngestSection()


@dataclass(frozen=True)
class Record:
    """The parts of a kafka-python record that doctor reads."""

    value: bytes | None
    timestamp: int = MS
    topic: str = "logs"
    partition: int = 0
    offset: int = 0
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


def record(content: Any, **others: Any) -> Record:
    return Record((content if isinstance(content, str) else json.dumps(content)).encode(), **others)


def states_of(records: list[Record]) -> dict[str, str]:
    now = datetime.fromtimestamp(MS / 1_000, UTC) + timedelta(days=1)
    findings = request_log.of_records(records, INGEST, now, 3_600)
    return {each.subject: each.state for each in findings}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(
            record({"ts": MS + 400, "broker": 1, "r": BODY}),
            SampledLine("envelope", None, "1", 0.4, has_bodies=True),
            id="our envelope, its clock a little ahead",
        ),
        pytest.param(
            record({"broker": 1, "r": BODY, "ts": "soon"}),
            SampledLine("envelope", None, "1", None, has_bodies=True, has_time=False),
            id="a time that is none",
        ),
        pytest.param(
            record(BODY, key=b"2"),
            SampledLine("bare", None, "2", None, has_bodies=True),
            id="bare, identified by its key",
        ),
        pytest.param(
            record(BODY, headers=(("broker_id", b"3"),), key=b"x"),
            SampledLine("bare", None, "3", None, has_bodies=True),
            id="bare, a header tells",
        ),
        pytest.param(record(BODY), SampledLine("bare", has_bodies=True), id="bare, no key"),
        pytest.param(
            record(f"[2026] DEBUG Completed request:{json.dumps(BODY)} (kafka.request.logger)"),
            SampledLine("stock layout", has_bodies=True),
            id="Kafka's own layout",
        ),
        pytest.param(
            record({"r": BODY | {"response": None, "request": None}}),
            SampledLine("envelope"),
            id="no bodies",
        ),
        pytest.param(
            record({"r": {"requestHeader": {"requestApiKey": 3}}}),
            SampledLine("envelope"),
            id="a header and no more",
        ),
        pytest.param(
            record({"log": f"Completed request:{json.dumps(BODY)}", "time": MS + 1_000}),
            SampledLine("wrapped (fluentd or Fluent Bit)", None, "unknown", 1.0, has_bodies=True),
            id="in the record of a shipper",
        ),
        pytest.param(
            record({"ts": MS, "broker": "kafka-2", "r": BODY}),
            SampledLine("envelope", None, "2", 0.0, has_bodies=True),
            id="the name of a pod",
        ),
        pytest.param(record("{cut off"), SampledLine("unreadable", "not_json"), id="no JSON"),
        pytest.param(
            record({"level": "INFO"}),
            SampledLine("unreadable", "not_a_request_line"),
            id="another log",
        ),
        pytest.param(record([1]), SampledLine("unreadable", "not_json"), id="an array"),
        pytest.param(
            record({"ts": 1, "r": 7}),
            SampledLine("unreadable", "not_a_request_line"),
            id="a number for a request",
        ),
        pytest.param(Record(None), SampledLine("unreadable", "empty_line"), id="no value"),
        *(
            pytest.param(
                record({"ts": MS, "broker": 1, "r": BODY}, timestamp=ms),
                SampledLine("envelope", None, "1", None, has_bodies=True),
                id=f"a record of {ms} ms",
            )
            for ms in (-1, 0, MS * 1_000, 2**63 - 1, -(2**63))
        ),
        pytest.param(Record(b"\xff\xfe"), SampledLine("unreadable", "not_json"), id="no text"),
    ],
)
def test_a_record_is_of_a_form_or_unreadable(line: Record, expected: SampledLine) -> None:
    assert request_log.sampled([line], INGEST) == [expected]


def test_lines_that_brokers_sampled_are_counted() -> None:
    bodies = [{"ts": MS, "broker": 1, "weight": 10, "r": BODY}, {"ts": MS, "broker": 1, "r": BODY}]
    now = datetime.fromtimestamp(MS / 1_000, UTC)
    sampling = IngestSection(sampling={"PRODUCE": 0.01})
    findings = request_log.of_records([record(each) for each in bodies], sampling, now, 3_600)
    seen = next(each.observed for each in findings if each.subject == "log lines")
    assert seen.endswith("; 1 stand for several requests: brokers sample")


def test_lines_of_a_real_broker_are_read(golden: Path) -> None:
    text = (golden / "lines" / "slice_envelope_n1.jsonl").read_text(encoding="utf-8")
    records = [record(line, timestamp=1_795_220_700_000) for line in text.splitlines()]
    assert states_of(records) == {"log lines": "ok"} | FINE


ENVELOPE = {"ts": MS, "broker": 1, "r": BODY}
HEADER_ALONE = {"ts": MS, "broker": 1, "r": {"requestHeader": {"requestApiKey": 3}}}


@cases(
    ("records", "expected"),
    ("all unreadable", ["x", "y"], {"log lines": "bad"}),
    ("lines that are strings", [json.dumps(json.dumps(BODY))], {"log lines": "warning"}),
    ("some unreadable", ["x", ENVELOPE], {"log lines": "warning"}),
    ("broker unknown", [BODY], {"log lines": "warning"}),
    ("no bodies", [HEADER_ALONE], {"log bodies": "bad"}),
    ("no time", [ENVELOPE | {"ts": "soon"}], {"log times": "warning"}),
    (
        "a text for a number",
        [ENVELOPE | {"r": BODY | {"totalTimeMs": "fast"}}],
        {"log numbers": "warning"},
    ),
)
def test_what_is_found_of_the_newest_lines(records: list[Any], expected: dict[str, str]) -> None:
    states = states_of([record(each) for each in records])
    assert states == {"log lines": "ok"} | FINE | expected


def test_names_of_brokers_need_a_snapshot() -> None:
    lines = [record({"message": f"Completed request:{json.dumps(BODY)}", "host": host})
             for host in ("kafka-3", "worker-3")]  # fmt: skip
    now = datetime.fromtimestamp(MS / 1_000, UTC)
    first = {
        brokers: next(iter(request_log.of_records(lines[:n], INGEST, now, 3_600, brokers)))
        for n, brokers in ((1, ()), (2, (3,)))
    }
    assert first[()].state == "warning"
    assert first[()].observed.endswith("of broker unknown; 1 names a broker that no snapshot has")
    assert first[()].remedy.startswith("`quotaflow snapshot` first: ")
    assert "of broker 3, unknown; 1 names a broker" in first[3,].observed
    one = next(iter(request_log.of_records(lines[:1], INGEST, now, 3_600, (3,))))
    assert (one.state, one.observed) == (
        "ok",
        "of the newest 1: 1 wrapped (record of a shipper); of broker 3",
    )


def test_a_topic_without_records_has_no_other_finding() -> None:
    assert states_of([]) == {"log lines": "warning"}


def test_the_remedy_names_the_wrapper_and_the_cure() -> None:
    part = record({"log": "Completed request:{cut", "stream": "stdout", "time": MS})
    now = datetime.fromtimestamp(MS / 1_000, UTC)
    lines = next(iter(request_log.of_records([part], INGEST, now, 3_600)))
    assert "1 not_json" in lines.observed
    assert lines.remedy.startswith("docker: a part of a line: let the shipper join parts")


def test_lines_that_stand_for_several_requests_tell_that_brokers_sample() -> None:
    whole, part = (record({"ts": MS, "broker": 1, "r": BODY, "weight": n}) for n in (1, 10))
    assert request_log.stand_for_several([whole, part], INGEST)
    assert not request_log.stand_for_several([whole], INGEST)
    assert not request_log.stand_for_several([], INGEST)
    assert not request_log.stand_for_several(None, INGEST)
    # Conf's own sampling says nothing about brokers.
    sampling = IngestSection(sampling={"PRODUCE": 0.1})
    assert not request_log.stand_for_several([whole] * 20, sampling)
