"""Checks the newest records of the request log: layout, completeness, clocks."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from quotaflow.pipelines.config import IngestSection
from quotaflow.pipelines.doctor.cluster_probe import Probe
from quotaflow.pipelines.doctor.finding import BAD, OK, WARNING, Finding, from_error
from quotaflow.pipelines.errors import QuotaflowError
from quotaflow.pipelines.kafka import record_batches, tail
from quotaflow.pipelines.kafka.admin import Cluster
from quotaflow.udfs.request_log import columns
from quotaflow.udfs.request_log.parser import LineParser

_MAX_RECORDS = 50
_WITHIN_S = 8
_A_DAY_S = 86_400
_UNREADABLE = "unreadable"
_LAYOUT = "use broker/log4j2.yaml, and a shipper that sends one record per line"


@dataclass(frozen=True, slots=True)
class SampledLine:
    """What doctor shows of a record: its form, or the reason why it is unreadable; its broker.

    `ahead_s`: the time that the line states minus the record's time. If negative, the line may have
    waited to be sent. `has_time`: it states a time that can be read, or none at all.
    """

    form: str
    reason: str | None = None
    broker: str = "unknown"
    ahead_s: float | None = None
    has_bodies: bool = False
    has_time: bool = True


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
    yield from of_records(records, probe.conf.ingest)


def of_records(records: Sequence[Any], ingest: IngestSection) -> Iterator[Finding]:
    """Findings on some records of kafka-python."""
    if not records:
        remedy = "switch the request log on (`quotaflow capture`), and ship it"
        yield Finding("log lines", WARNING, "the topic has none", remedy)
        return
    lines = sampled(records, ingest)
    yield _forms(lines)
    yield _bodies(lines)
    yield _clocks(lines, ingest.max_clock_skew_s)


def sampled(records: Sequence[Any], ingest: IngestSection) -> list[SampledLine]:
    """Records of the topic, as the ingest job reads them."""
    parsed = LineParser(ingest.line_options).parse(record_batches.of_records(records)).lines
    names = ["reason", "form", "broker_id", "stated_time", "record_time", "has_bodies"]
    return [_line(row) for row in parsed.select([*names, *columns.DOUBTFUL]).to_pylist()]


def _line(row: dict[str, Any]) -> SampledLine:
    if row["reason"] is not None:
        return SampledLine(_UNREADABLE, row["reason"])
    broker = "unknown" if row["broker_id"] is None else str(row["broker_id"])
    stated, recorded = row["stated_time"], row["record_time"]
    ahead_s = None
    if stated is not None and recorded is not None:
        ahead_s = (stated - recorded).total_seconds()
    has_time = stated is not None or not row["implausible_time"]
    return SampledLine(row["form"], None, broker, ahead_s, row["has_bodies"], has_time)


def _forms(lines: list[SampledLine]) -> Finding:
    forms = Counter(each.form for each in lines)
    brokers = sorted({each.broker for each in lines if each.form != _UNREADABLE})
    in_order = sorted(forms.items(), key=lambda each: (-each[1], each[0]))
    counts = ", ".join(f"{n} {form}" for form, n in in_order)
    reasons = Counter(each.reason for each in lines if each.reason)
    if reasons:
        counts += f" ({', '.join(f'{n} {reason}' for reason, n in sorted(reasons.items()))})"
    seen = f"of the newest {len(lines)}: {counts}; of broker {', '.join(brokers) or 'none'}"
    if forms[_UNREADABLE] == len(lines):
        return Finding("log lines", BAD, seen, _LAYOUT)
    if forms[_UNREADABLE]:
        remedy = "see quarantine: `quotaflow show quarantine`"
        return Finding("log lines", WARNING, seen, remedy)
    if "unknown" in brokers:
        remedy = "results by broker need it: use the envelope of broker/log4j2.yaml"
        return Finding("log lines", WARNING, f"{seen}: some lines name none", remedy)
    return Finding("log lines", OK, seen)


def _bodies(lines: list[SampledLine]) -> Finding:
    readable = [each for each in lines if each.form != _UNREADABLE]
    whole = sum(each.has_bodies for each in readable)
    seen = f"{whole} of {len(readable)} have request and response"
    if whole == len(readable):
        return Finding("log bodies", OK, seen)
    remedy = "set kafka.request.logger to DEBUG or TRACE; the shipper must not cut lines"
    return Finding("log bodies", BAD, seen, remedy)


def _clocks(lines: list[SampledLine], max_skew_s: int) -> Finding:
    """Times that cannot be right, and clocks that are ahead or far behind.

    A clock that is a little behind cannot be distinguished from late delivery.
    """
    ahead: dict[str, float] = {}
    for each in lines:
        if each.ahead_s is not None:
            ahead[each.broker] = max(ahead.get(each.broker, -1e12), each.ahead_s)
    over = {broker: s for broker, s in ahead.items() if s > max_skew_s}
    if over:
        seen = ", ".join(f"broker {broker} is {s:.0f} s ahead" for broker, s in over.items())
        seen += f" (bound: {max_skew_s} s, ingest.max_clock_skew_s)"
        return Finding("clocks of brokers", BAD, seen, "set their clocks by NTP")
    if unreadable := sum(not each.has_time for each in lines):
        seen = (
            f"the time of {unreadable} of {len(lines)} lines cannot be read: record times are used"
        )
        remedy = "write epoch milliseconds, or ISO 8601 with its zone; see ingest.time_zone"
        return Finding("clocks of brokers", WARNING, seen, remedy)
    if not ahead:
        return Finding("clocks of brokers", OK, "lines have no time: record times are used")
    late_s = max(-min(ahead.values()), 0)
    seen = f"none is ahead; lines came at most {late_s:.0f} s after they were written"
    if late_s > _A_DAY_S:
        remedy = "is this an old log, or are clocks of brokers or shippers behind?"
        return Finding("clocks of brokers", WARNING, seen, remedy)
    return Finding("clocks of brokers", OK, seen)
