"""Checks the newest records of the request log: layout, completeness, clocks."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from quotaflow.pipelines.doctor.cluster_probe import Probe
from quotaflow.pipelines.doctor.finding import BAD, OK, WARNING, Finding, from_error
from quotaflow.pipelines.errors import QuotaflowError
from quotaflow.pipelines.kafka import tail
from quotaflow.pipelines.kafka.admin import Cluster
from quotaflow.schemas import events

_MAX_RECORDS = 50
_WITHIN_S = 8
_ENVELOPE, _STOCK = re.compile(events.ENVELOPE_PATTERN), re.compile(events.STOCK_PATTERN)
_LAYOUT = "use broker/log4j2.yaml, and a shipper that sends one record per line"


@dataclass(frozen=True, slots=True)
class SampledLine:
    """What doctor reads of a record: its form, or `unreadable`; its broker; whether it is whole.

    `ahead_ms`: event time minus record time. If negative, the line may have waited to be sent.
    """

    form: str
    broker: str = "unknown"
    ahead_ms: int | None = None
    is_whole: bool = False


def findings(probe: Probe, cluster: Cluster) -> Iterator[Finding]:
    """Findings on the newest records of the topic."""
    topic = cluster.topics.get(probe.conf.ingest.request_log_topic or "")
    if topic is None:
        return
    partitions = {topic.name: topic.partitions}
    try:
        records = tail.newest(probe.conf.kafka.properties, partitions, _MAX_RECORDS, _WITHIN_S)
    except QuotaflowError as error:
        yield from_error("log lines", error)
        return
    yield from of_records(records, probe.conf.ingest.max_clock_skew_s)


def of_records(records: Sequence[Any], max_skew_s: int) -> Iterator[Finding]:
    """Findings on some records of kafka-python."""
    if not records:
        remedy = "switch the request log on (`quotaflow capture`), and ship it"
        yield Finding("log lines", WARNING, "the topic has none", remedy)
        return
    lines = [line(record) for record in records]
    yield _forms(lines)
    yield _bodies(lines)
    yield _clocks(lines, max_skew_s)


def line(record: Any) -> SampledLine:
    """One record of the topic."""
    text = (record.value or b"").decode("utf-8", "replace")
    form = "envelope" if _ENVELOPE.match(text) else "bare"
    stock = None if text.lstrip().startswith("{") else _STOCK.search(text)
    form = "stock prefix" if stock else form
    try:
        parsed = json.loads(stock[1] if stock else text)
        request = parsed["r"] if form == "envelope" else parsed
        is_request = isinstance(request, dict) and "requestHeader" in request
    except (ValueError, KeyError, TypeError):
        return SampledLine("unreadable")
    if not is_request:
        return SampledLine("unreadable")
    whole = bool(request.get("request")) and "response" in request
    at = parsed.get("ts") if form == "envelope" else None
    ahead = at - record.timestamp if isinstance(at, int) else None
    return SampledLine(form, _broker(record, parsed, form), ahead, whole)


def _broker(record: Any, parsed: dict[str, Any], form: str) -> str:
    headers = dict(record.headers or ())
    carried = headers.get("broker_id") or record.key or b""
    broker_id = parsed.get("broker") if form == "envelope" else carried.decode("utf-8", "replace")
    return str(broker_id) if str(broker_id).isdecimal() else "unknown"


def _forms(lines: list[SampledLine]) -> Finding:
    forms = Counter(each.form for each in lines)
    brokers = sorted({each.broker for each in lines if each.form != "unreadable"})
    in_order = sorted(forms.items(), key=lambda each: (-each[1], each[0]))
    counts = ", ".join(f"{n} {form}" for form, n in in_order)
    seen = f"of the newest {len(lines)}: {counts}; of broker {', '.join(brokers) or 'none'}"
    if forms["unreadable"] == len(lines):
        return Finding("log lines", BAD, seen, _LAYOUT)
    if forms["unreadable"]:
        remedy = "see quarantine: `quotaflow show quarantine`"
        return Finding("log lines", WARNING, seen, remedy)
    if "unknown" in brokers:
        remedy = "results by broker need it: use the envelope of broker/log4j2.yaml"
        return Finding("log lines", WARNING, f"{seen}: some lines name none", remedy)
    return Finding("log lines", OK, seen)


def _bodies(lines: list[SampledLine]) -> Finding:
    readable = [each for each in lines if each.form != "unreadable"]
    whole = sum(each.is_whole for each in readable)
    seen = f"{whole} of {len(readable)} have request and response"
    if whole == len(readable):
        return Finding("log bodies", OK, seen)
    remedy = "set kafka.request.logger to DEBUG or TRACE; the shipper must not cut lines"
    return Finding("log bodies", BAD, seen, remedy)


def _clocks(lines: list[SampledLine], max_skew_s: int) -> Finding:
    """Clocks that are ahead. A clock that is behind cannot be distinguished from late delivery."""
    ahead: dict[str, float] = {}
    for each in lines:
        if each.ahead_ms is not None:
            ahead[each.broker] = max(ahead.get(each.broker, -1e12), each.ahead_ms / 1_000)
    if not ahead:
        return Finding("clocks of brokers", OK, "lines have no time: record times are used")
    over = {broker: s for broker, s in ahead.items() if s > max_skew_s}
    if over:
        seen = ", ".join(f"broker {broker} is {s:.0f} s ahead" for broker, s in over.items())
        seen += f" (bound: {max_skew_s} s, ingest.max_clock_skew_s)"
        return Finding("clocks of brokers", BAD, seen, "set their clocks by NTP")
    late_s = -min(ahead.values())
    seen = f"none is ahead; lines came at most {max(late_s, 0):.0f} s after they were written"
    return Finding("clocks of brokers", OK, seen)
