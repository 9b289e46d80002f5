"""Checks times of request-log lines against those of their records, and numbers of lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from quotaflow.pipelines.doctor.finding import BAD, OK, WARNING, Finding
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted, noun

UNREADABLE = "unreadable"
"""The form of a line that cannot be read."""

CLOCKS = "clocks of brokers"
_A_DAY_S = 86_400
_LARGEST_ZONE_S = 14 * 3_600
_QUARTER_S = 900
_ZONE_TOLERANCE_S = 30
_BY_NTP = "set their clocks by NTP"
_ZONE = (
    "whole quarters of an hour, such as a time zone: write epoch milliseconds or the zone, or set "
    "ingest.time_zone; if it is none, set their clocks by NTP"
)
_WRONG_DATE = "check the date of the hosts, and the field and unit of the shipper's time"
_BEHIND = "clocks of brokers are behind (set them by NTP), or shippers lag"


@dataclass(frozen=True, slots=True)
class SampledLine:
    """What doctor shows of a record: its form, or the reason why it is unreadable; its broker.

    `ahead_s`: the time that the line states minus the record's time. If negative, the line may have
    waited to be sent. `has_time`: it states a time that can be read, or none at all. `has_numbers`:
    no number of it is unreadable. `has_unknown_name`: it names its broker by a name whose number is
    of none. `recorded_at`: null where the record has no time. `detail`: of
    the reason, with the cure where there is one. `weight`: the requests that it represents.
    `is_duplicate`: an older record has the same request.
    """

    form: str
    reason: str | None = None
    broker: str = "unknown"
    ahead_s: float | None = None
    has_bodies: bool = False
    has_time: bool = True
    has_numbers: bool = True
    has_unknown_name: bool = False
    recorded_at: datetime | None = field(default=None, compare=False)
    detail: str | None = field(default=None, compare=False)
    weight: float = 1.0
    is_duplicate: bool = False


def findings(
    lines: Sequence[SampledLine], now: datetime, max_skew_s: int, max_lateness_s: int
) -> Iterator[Finding]:
    """Findings on the times and numbers of readable lines."""
    readable = [line for line in lines if line.form != UNREADABLE]
    yield _values("log times", [not line.has_time for line in readable], "a time", _TIMES)
    yield _values("log numbers", [not line.has_numbers for line in readable], "numbers", _NUMBERS)
    yield _record_times(readable, now, max_skew_s)
    yield _clocks(readable, max_skew_s, max_lateness_s)


_TIMES = (
    "record times are used: write epoch milliseconds, or ISO 8601 with its zone; see "
    "ingest.time_zone"
)
_NUMBERS = "they are null: send lines as brokers write them"


def _values(subject: str, unreadable: list[bool], what: str, remedy: str) -> Finding:
    if count := sum(unreadable):
        lines = f"{count} of {counted(len(unreadable), 'line')} {noun(count, 'has', 'have')}"
        seen = f"{lines} {what} that cannot be read"
        return Finding(subject, WARNING, seen, remedy)
    return Finding(subject, OK, "all can be read")


def _record_times(lines: Sequence[SampledLine], now: datetime, max_skew_s: int) -> Finding:
    """Times of records bound those of lines, and stand for them where a line has none."""
    subject = "record times"
    if missing := sum(line.recorded_at is None for line in lines):
        records = f"{missing} of {counted(len(lines), 'record')} {noun(missing, 'has', 'have')}"
        seen = f"{records} no time, or one before 2010"
        remedy = "let the shipper set it, or set message.timestamp.type=LogAppendTime on the topic"
        return Finding(subject, WARNING, seen, remedy)
    ahead_s = max(
        ((line.recorded_at - now).total_seconds() for line in lines if line.recorded_at), default=0
    )
    if ahead_s > max_skew_s:
        seen = f"the newest is {texts.fixed(ahead_s)} s ahead of this machine"
        return Finding(subject, WARNING, seen, "set clocks of shippers and of this machine by NTP")
    return Finding(subject, OK, "every record has one, and none is ahead of this machine")


def _clocks(lines: Sequence[SampledLine], max_skew_s: int, max_lateness_s: int) -> Finding:
    """Clocks that are ahead of records, or behind.

    The least delay of a broker counts: a queue of its shipper delays some lines more than others.
    A clock that is a little behind cannot be distinguished from late delivery.
    """
    ahead: dict[str, float] = {}
    for line in lines:
        if line.ahead_s is not None:
            ahead[line.broker] = max(ahead.get(line.broker, line.ahead_s), line.ahead_s)
    if not ahead:
        return Finding(CLOCKS, OK, "lines have no time: record times are used")
    if over := {broker: s for broker, s in ahead.items() if s > max_skew_s}:
        return _ahead(over, ahead, max_skew_s)
    foremost_s = max(ahead.values())
    behind = {
        broker: -s
        for broker, s in ahead.items()
        if -s > max_lateness_s or (foremost_s - s > max_skew_s and -s > max_skew_s)
    }
    if behind:
        return _behind(behind, max_lateness_s)
    late_s = max(-min(ahead.values()), 0)
    return Finding(
        CLOCKS, OK, f"none is ahead; lines came {texts.fixed(late_s)} s after they were written"
    )


def _ahead(over: dict[str, float], ahead: dict[str, float], max_skew_s: int) -> Finding:
    seen = f"{_listed(over, 'ahead')} (threshold: {max_skew_s} s, ingest.max_clock_skew_s)"
    is_every = len(over) == len(ahead) > 1
    is_alike = is_every and max(over.values()) - min(over.values()) <= max_skew_s
    if max(over.values()) >= _A_DAY_S:
        remedy = _WRONG_DATE
    elif all(map(_is_zone, over.values())):
        remedy = _ZONE
    elif is_alike:
        remedy = "all alike, so the clock of the shipper may be behind: set it by NTP, and theirs"
    else:
        remedy = _BY_NTP
    return Finding(CLOCKS, BAD, seen, remedy)


def _behind(behind: dict[str, float], max_lateness_s: int) -> Finding:
    seen = _listed(behind, "behind its records")
    if max(behind.values()) >= _A_DAY_S:
        remedy = f"is this an old log? If not: {_WRONG_DATE}"
    elif all(map(_is_zone, behind.values())):
        remedy = _ZONE
    else:
        remedy = _BEHIND
    if max(behind.values()) > max_lateness_s:
        remedy += f"; past {max_lateness_s} s results need `quotaflow rebuild`"
    return Finding(CLOCKS, WARNING, seen, remedy)


def _listed(by_broker: dict[str, float], side: str) -> str:
    return ", ".join(
        f"broker {broker} is {texts.fixed(s)} s {side}" for broker, s in by_broker.items()
    )


def _is_zone(off_s: float) -> bool:
    """Whether a difference is one that two time zones have."""
    quarters = round(off_s / _QUARTER_S)
    is_near = abs(off_s - quarters * _QUARTER_S) <= _ZONE_TOLERANCE_S
    return quarters > 0 and is_near and off_s <= _LARGEST_ZONE_S + _ZONE_TOLERANCE_S
