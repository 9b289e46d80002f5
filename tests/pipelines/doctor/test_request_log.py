"""Checks of the newest records of the request log."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from quotaflow.pipelines.config import IngestSection
from quotaflow.pipelines.doctor import request_log
from quotaflow.pipelines.doctor.line_times import SampledLine

from ...cases import cases

FINE = dict.fromkeys(
    ("log bodies", "log times", "log numbers", "record times", "clocks of brokers"), "ok"
)
BODY = {"requestHeader": {"requestApiKey": 3}, "request": {"topics": []}, "response": {}}
MS = 1_795_168_800_000
NOW = datetime.fromtimestamp(MS / 1_000, UTC)
ENVELOPE = {"ts": MS, "broker": 1, "r": BODY}
HEADER_ALONE = ENVELOPE | {"r": {"requestHeader": {"requestApiKey": 3}}}
BODILESS = SampledLine("envelope")
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
    findings = request_log.of_records(records, INGEST, NOW + timedelta(days=1), 3_600)
    return {each.subject: each.state for each in findings}


def seen(
    form: str, broker: str = "unknown", ahead_s: float | None = None, *, has_time: bool = True
) -> SampledLine:
    """A line with bodies, of this form and broker."""
    return SampledLine(form, None, broker, ahead_s, has_bodies=True, has_time=has_time)


def unreadable(reason: str) -> SampledLine:
    return SampledLine("unreadable", reason)


STOCK = f"[2026] DEBUG Completed request:{json.dumps(BODY)} (kafka.request.logger)"
FLUENT = {"log": f"Completed request:{json.dumps(BODY)}", "time": MS + 1_000}


@cases(
    ("line", "expected"),
    ("its clock a little ahead", record(ENVELOPE | {"ts": MS + 400}), seen("envelope", "1", 0.4)),
    ("no such time", record(ENVELOPE | {"ts": "soon"}), seen("envelope", "1", has_time=False)),
    ("bare, identified by its key", record(BODY, key=b"2"), seen("bare", "2")),
    ("bare, a header", record(BODY, headers=(("broker_id", b"3"),), key=b"x"), seen("bare", "3")),
    ("bare, no key", record(BODY), seen("bare")),
    ("Kafka's own layout", record(STOCK), seen("stock layout")),
    ("no bodies", record({"r": BODY | dict.fromkeys(("request", "response"))}), BODILESS),
    ("a header and no more", record({"r": HEADER_ALONE["r"]}), BODILESS),
    ("by a shipper", record(FLUENT), seen("wrapped (fluentd or Fluent Bit)", ahead_s=1.0)),
    ("the name of a pod", record(ENVELOPE | {"broker": "kafka-2"}), seen("envelope", "2", 0.0)),
    ("no JSON", record("{cut off"), unreadable("not_json")),
    ("another log", record({"level": "INFO"}), unreadable("not_a_request_line")),
    ("an array", record([1]), unreadable("not_json")),
    ("a number for a request", record({"ts": 1, "r": 7}), unreadable("not_a_request_line")),
    ("no value", Record(None), unreadable("empty_line")),
    *(
        (f"a record of {ms} ms", record(ENVELOPE, timestamp=ms), seen("envelope", "1"))
        for ms in (-1, 0, MS * 1_000, 2**63 - 1, -(2**63))
    ),
    ("no text", Record(b"\xff\xfe"), unreadable("not_json")),
)
def test_a_record_is_of_a_form_or_unreadable(line: Record, expected: SampledLine) -> None:
    assert request_log.sampled([line], INGEST) == [expected]


def test_lines_that_brokers_sampled_are_counted() -> None:
    records = [record(ENVELOPE | {"weight": 10}), record(ENVELOPE)]
    sampling = IngestSection(sampling={"PRODUCE": 0.01})
    findings = request_log.of_records(records, sampling, NOW, 3_600)
    seen = next(each.observed for each in findings if each.subject == "log lines")
    assert seen.endswith("; 1 stand for several requests: brokers sample")


def test_lines_of_a_real_broker_are_read(golden: Path) -> None:
    text = (golden / "lines" / "slice_envelope_n1.jsonl").read_text(encoding="utf-8")
    records = [record(line, timestamp=1_795_220_700_000) for line in text.splitlines()]
    assert states_of(records) == {"log lines": "ok"} | FINE


@cases(
    ("records", "expected"),
    ("all unreadable", ["x", "y"], {"log lines": "bad"}),
    ("lines that are strings", [json.dumps(json.dumps(BODY))], {"log lines": "warning"}),
    ("some unreadable", ["x", ENVELOPE], {"log lines": "warning"}),
    ("broker unknown", [BODY], {"log lines": "warning"}),
    ("no bodies", [HEADER_ALONE], {"log bodies": "bad"}),
    ("no time", [ENVELOPE | {"ts": "soon"}], {"log times": "warning"}),
    ("no number", [ENVELOPE | {"r": BODY | {"totalTimeMs": "fast"}}], {"log numbers": "warning"}),
)
def test_what_is_found_of_the_newest_lines(records: list[Any], expected: dict[str, str]) -> None:
    states = states_of([record(each) for each in records])
    assert states == {"log lines": "ok"} | FINE | expected


def test_names_of_brokers_need_a_snapshot() -> None:
    lines = [record({"message": f"Completed request:{json.dumps(BODY)}", "host": host})
             for host in ("kafka-3", "worker-3")]  # fmt: skip
    first = {
        brokers: next(iter(request_log.of_records(lines[:n], INGEST, NOW, 3_600, brokers)))
        for n, brokers in ((1, ()), (2, (3,)))
    }
    assert first[()].state == "warning"
    assert first[()].observed.endswith("of broker unknown; 1 names a broker that no snapshot has")
    assert first[()].remedy.startswith("`quotaflow snapshot` first: ")
    assert "of broker 3, unknown; 1 names a broker" in first[3,].observed
    one = next(iter(request_log.of_records(lines[:1], INGEST, NOW, 3_600, (3,))))
    assert (one.state, one.observed) == (
        "ok",
        "of the newest 1: 1 wrapped (record of a shipper); of broker 3",
    )


def test_lines_that_a_shipper_sends_again_are_named() -> None:
    request = BODY | {"requestHeader": {"requestApiKey": 3, "correlationId": 7}, "connection": "c"}
    once, other = (record(ENVELOPE | {"ts": MS + n, "r": request}) for n in (0, 1))
    finding = next(iter(request_log.of_records([once, other, once], INGEST, NOW, 3_600)))
    assert finding.state == "warning"
    assert finding.observed.endswith("of broker 1; 1 repeats an older one")
    assert states_of([once, other]) == {"log lines": "ok"} | FINE
    unnumbered = record(ENVELOPE)
    assert states_of([unnumbered, unnumbered]) == {"log lines": "ok"} | FINE


def test_a_topic_without_records_has_no_other_finding() -> None:
    assert states_of([]) == {"log lines": "warning"}


def test_the_remedy_names_the_wrapper_and_the_cure() -> None:
    part = record({"log": "Completed request:{cut", "stream": "stdout", "time": MS})
    lines = next(iter(request_log.of_records([part], INGEST, NOW, 3_600)))
    assert "1 not_json" in lines.observed
    assert lines.remedy.startswith("docker: a part of a line: let the shipper join parts")


def test_lines_that_stand_for_several_requests_tell_that_brokers_sample() -> None:
    whole, part = (record(ENVELOPE | {"weight": n}) for n in (1, 10))
    assert request_log.stand_for_several([whole, part], INGEST)
    assert not request_log.stand_for_several([whole], INGEST)
    assert not request_log.stand_for_several([], INGEST)
    assert not request_log.stand_for_several(None, INGEST)
    # Conf's own sampling says nothing about brokers.
    sampling = IngestSection(sampling={"PRODUCE": 0.1})
    assert not request_log.stand_for_several([whole] * 20, sampling)
