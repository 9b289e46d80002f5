"""Clocks and times of request-log lines: what is wrong, in both directions, and its cure."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from quotaflow.pipelines.config import IngestSection
from quotaflow.pipelines.doctor import line_times, request_log
from quotaflow.pipelines.doctor.finding import Finding

from ...cases import cases
from .test_request_log import BODY, MS, Record

NOW = datetime.fromtimestamp(MS / 1_000, UTC)
H = 3_600
DAY = 24 * H
NTP, ZONE, DATE, SHIPPER = "by NTP", "time zone", "check the date", "clock of the shipper"
LAGS, REBUILD = "shippers lag", "quotaflow rebuild"


def findings_of(*lines: tuple[Any, int], record_ms: int = MS) -> dict[str, Finding]:
    """Findings on lines: the time of each, and its broker."""
    records = [
        Record(json.dumps({"ts": ts, "broker": broker, "r": BODY}).encode(), timestamp=record_ms)
        for ts, broker in lines
    ]
    sampled = request_log.sampled(records, IngestSection())
    return {each.subject: each for each in line_times.findings(sampled, NOW, 60, H)}


def off(*seconds: float) -> list[tuple[float, int]]:
    """A line of each broker, whose clock is off by so much."""
    return [(MS + s * 1_000, broker) for broker, s in enumerate(seconds, start=1)]


@cases(
    ("seconds", "state", "cures"),
    ("right", [0], "ok", []),
    ("ahead, at the bound", [60], "ok", []),
    ("ahead, past the bound", [61], "bad", [NTP]),
    ("one of two is ahead", [7_654, 0], "bad", [NTP]),
    ("all are ahead alike", [7_654, 7_660], "bad", [SHIPPER]),
    ("all are ahead, and not alike", [7_654, 1_234], "bad", [NTP]),
    ("a zone ahead", [2 * H + 1], "bad", [ZONE, "ingest.time_zone", NTP]),
    ("a zone of three quarters", [5.75 * H], "bad", [ZONE]),
    ("a year ahead", [365 * DAY], "bad", [DATE]),
    ("a minute behind may be delivery", [-61], "ok", []),
    ("behind, and results still take it", [-H + 100], "ok", []),
    ("behind, past lateness", [-H - 400], "warning", [NTP, LAGS, REBUILD]),
    ("behind the other broker", [-500, 0], "warning", [NTP, LAGS]),
    ("behind alike: a shipper that lags", [-500, -490], "ok", []),
    ("a zone behind", [-5 * H - 1, 0], "warning", [ZONE, REBUILD]),
    ("a day behind", [-100_000], "warning", [DATE, "old log", REBUILD]),
    ("an old log", [-300 * DAY], "warning", [DATE, "old log"]),
)
def test_a_clock_is_wrong_in_either_direction(
    seconds: list[float], state: str, cures: list[str]
) -> None:
    clocks = findings_of(*off(*seconds))[line_times.CLOCKS]
    assert clocks.state == state
    assert [cure for cure in cures if cure not in clocks.remedy] == []
    assert bool(clocks.remedy) == (state != "ok")
    assert (SHIPPER in clocks.remedy) == (SHIPPER in cures)


@pytest.mark.parametrize("record_ms", [-1, 0, 59_999, -(2**63)])
def test_a_record_without_a_time_blames_no_clock(record_ms: int) -> None:
    findings = findings_of((MS, 1), record_ms=record_ms)
    assert findings[line_times.CLOCKS].state == "ok"
    assert findings["record times"].state == "warning"
    assert "message.timestamp.type=LogAppendTime" in findings["record times"].remedy


def test_records_ahead_of_this_machine_are_named() -> None:
    findings = findings_of((MS + 500_000, 1), record_ms=MS + 500_000)
    assert findings["record times"].observed == "the newest is 500 s ahead of this machine"
    assert findings[line_times.CLOCKS].state == "ok"


@pytest.mark.parametrize(
    "ts", [MS // 1_000, MS / 1_000, str(MS), MS * 1_000, MS * 10**6, "2026-11-20T10:00:00Z"]
)
def test_a_time_in_another_unit_or_form_is_no_wrong_clock(ts: Any) -> None:
    states = {subject: each.state for subject, each in findings_of((ts, 1)).items()}
    assert set(states.values()) == {"ok"}


@pytest.mark.parametrize("ts", [0, 60, -1, "soon", "2026-11-20 10:00:00.5 CET", 10**30, True])
def test_a_time_that_cannot_be_is_named_as_such_and_blames_no_clock(ts: Any) -> None:
    findings = findings_of((ts, 1), (MS, 2))
    assert findings["log times"].observed == "1 of 2 lines has a time that cannot be read"
    assert "ISO 8601 with its zone" in findings["log times"].remedy
    assert findings[line_times.CLOCKS].state == "ok"


def test_unreadable_times_do_not_hide_a_wrong_clock() -> None:
    findings = findings_of(("soon", 1), (MS + 100_000, 2))
    states = (findings["log times"].state, findings[line_times.CLOCKS].state)
    assert states == ("warning", "bad")
