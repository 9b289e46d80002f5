"""Checks the newest records of the request log: layout, completeness, times."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from quotaflow.pipelines.config import Conf, IngestSection
from quotaflow.pipelines.doctor import line_times
from quotaflow.pipelines.doctor.cluster_probe import Probe
from quotaflow.pipelines.doctor.finding import BAD, OK, WARNING, Finding, from_error
from quotaflow.pipelines.doctor.line_times import UNREADABLE, SampledLine
from quotaflow.pipelines.errors import QuotaflowError
from quotaflow.pipelines.kafka import record_batches, tail
from quotaflow.pipelines.kafka.admin import Cluster
from quotaflow.pipelines.kafka.cluster_state import UnansweredError
from quotaflow.pipelines.warehouse.known_brokers import known_brokers
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.udfs.counted import noun
from quotaflow.udfs.request_log import columns
from quotaflow.udfs.request_log.parser import LineParser

_MAX_RECORDS = 50
_WITH_CURE = (columns.NOT_JSON, columns.WRAPPED_LINE, columns.OLD_TEXT_FORMAT)
_WITHIN_S = 8
_NAMES = (
    "`quotaflow snapshot` first: then the number of a name such as kafka-3 counts, and never that "
    "of a machine such as worker-3; or let the shipper set the header broker_id"
)
_AGAIN = (
    "each request counts once; a shipper that reads its file from the start again, such as after "
    "copytruncate, sends every line twice: rotate by rename, and keep its position file"
)
_LAYOUT = "use broker/log4j2.yaml and a shipper of broker/"


Newest = Sequence[Any] | QuotaflowError | None
"""The newest records of the topic, or why they cannot be read; None: there is no topic."""


def newest(probe: Probe, cluster: Cluster) -> Newest:
    """Read the newest records of the topic."""
    topic = cluster.topics.get(probe.conf.ingest.request_log_topic or "")
    if topic is None:
        return None
    partitions = {topic.name: topic.partitions}
    try:
        return tail.newest(probe.conf.kafka.login, partitions, _MAX_RECORDS, _WITHIN_S)
    except QuotaflowError as error:
        return error


def snapshot_brokers(probe: Probe, cluster: Cluster) -> tuple[int, ...]:
    """The brokers that ingest knows by a snapshot; in a catalog those that one would find."""
    try:
        if probe.conf.warehouse.catalog_schema:
            return tuple(broker["broker_id"] for broker in probe.state.brokers())
        return known_brokers(open_reader(probe.conf), cluster.cluster_id)
    except (QuotaflowError, UnansweredError):
        # The findings on tables and brokers name what is wrong with them.
        return ()


def findings(read: Newest, conf: Conf, brokers: tuple[int, ...]) -> Iterator[Finding]:
    """Findings on the newest records of the topic; `brokers` are known by a snapshot."""
    if isinstance(read, QuotaflowError):
        yield from_error("log lines", read)
    elif read is not None:
        now = datetime.now(UTC)
        yield from of_records(read, conf.ingest, now, conf.results.max_lateness_s, brokers)


def stand_for_several(read: Newest, ingest: IngestSection) -> bool:
    """Whether a record represents several requests, as its broker says."""
    if not read or isinstance(read, QuotaflowError):
        return False
    return any(each.weight > 1 for each in sampled(read, ingest))


def of_records(
    records: Sequence[Any],
    ingest: IngestSection,
    now: datetime,
    max_lateness_s: int,
    brokers: tuple[int, ...] = (),
) -> Iterator[Finding]:
    """Findings on some records of kafka-python."""
    if not records:
        remedy = "ship the request log; where it is off, switch it on (`quotaflow capture`)"
        yield Finding("log lines", WARNING, "the topic has none", remedy)
        return
    lines = sampled(records, ingest, brokers)
    yield _forms(lines)
    yield _bodies(lines)
    yield from line_times.findings(lines, now, ingest.max_clock_skew_s, max_lateness_s)


def sampled(
    records: Sequence[Any], ingest: IngestSection, brokers: tuple[int, ...] = ()
) -> list[SampledLine]:
    """Records of the topic, as the ingest job reads them that knows these brokers."""
    names = ["reason", "detail", "form", "broker_id", "stated_time", "record_time", "has_bodies"]
    # Without conf's own sampling a weight is what the broker says.
    whole = ingest.model_copy(update={"sampling": {}})
    options = replace(whole.line_options, brokers=brokers)
    parsed = LineParser(options).parse(record_batches.of_records(records)).lines
    names += [*columns.DOUBTFUL, "weight"]
    chosen = parsed.select(dict.fromkeys([*names, *columns.OF_ONE_REQUEST]))
    requests = Counter[tuple[Any, ...]]()
    return [_line(row, requests) for row in chosen.to_pylist()]


def _line(row: dict[str, Any], requests: Counter[tuple[Any, ...]]) -> SampledLine:
    """A line of the sample; counts its request in `requests`, which has those of older lines."""
    if row["reason"] is not None:
        return SampledLine(UNREADABLE, row["reason"], detail=row["detail"])
    broker = "unknown" if row["broker_id"] is None else str(row["broker_id"])
    stated, recorded = row["stated_time"], row["record_time"]
    ahead_s = None
    if stated is not None and recorded is not None:
        ahead_s = (stated - recorded).total_seconds()
    has_time = stated is not None or not row["implausible_time"]
    request = tuple(row[name] for name in columns.OF_ONE_REQUEST)
    is_known = all(row[name] is not None for name in columns.CONNECTION_AND_NUMBER)
    requests[request] += is_known
    return SampledLine(
        row["form"],
        broker=broker,
        ahead_s=ahead_s,
        has_bodies=row["has_bodies"],
        has_time=has_time,
        has_numbers=not row["unreadable_numbers"],
        has_unknown_name=row["unknown_broker"],
        recorded_at=recorded,
        weight=row["weight"],
        is_duplicate=requests[request] > 1,
    )


def _forms(lines: list[SampledLine]) -> Finding:
    forms = Counter(each.form for each in lines)
    brokers = sorted({each.broker for each in lines if each.form != UNREADABLE})
    in_order = sorted(forms.items(), key=lambda each: (-each[1], each[0]))
    counts = ", ".join(f"{n} {form}" for form, n in in_order)
    reasons = Counter(each.reason for each in lines if each.reason)
    if reasons:
        counts += f" ({', '.join(f'{n} {reason}' for reason, n in sorted(reasons.items()))})"
    seen = f"of the newest {len(lines)}: {counts}; of broker {', '.join(brokers) or 'none'}"
    if by_brokers := sum(each.weight > 1 for each in lines):
        seen += f"; {by_brokers} stand for several requests: brokers sample"
    if forms[UNREADABLE] == len(lines):
        return Finding("log lines", BAD, seen, _cure(lines, _LAYOUT))
    if forms[UNREADABLE]:
        remedy = _cure(lines, "see quarantine: `quotaflow show quarantine`")
        return Finding("log lines", WARNING, seen, remedy)
    if named := sum(each.has_unknown_name for each in lines):
        seen += f"; {named} {noun(named, 'names', 'name')} a broker that no snapshot has"
        return Finding("log lines", WARNING, seen, _NAMES)
    if again := sum(each.is_duplicate for each in lines):
        seen += f"; {again} {noun(again, 'repeats', 'repeat')} an older one"
        return Finding("log lines", WARNING, seen, _AGAIN)
    if "unknown" in brokers:
        remedy = (
            "results by broker need it: use the envelope of broker/log4j2.yaml, or let the shipper "
            "set the header broker_id or the key"
        )
        return Finding("log lines", WARNING, f"{seen}: some lines name none", remedy)
    return Finding("log lines", OK, seen)


def _cure(lines: list[SampledLine], default: str) -> str:
    """What helps most of the unreadable lines, as the parser says; else the default."""
    details = Counter(line.detail for line in lines if line.detail and line.reason in _WITH_CURE)
    return f"{details.most_common(1)[0][0]}; or {default}" if details else default


def _bodies(lines: list[SampledLine]) -> Finding:
    readable = [each for each in lines if each.form != UNREADABLE]
    whole = sum(each.has_bodies for each in readable)
    seen = f"{whole} of {len(readable)} have request and response"
    if whole == len(readable):
        return Finding("log bodies", OK, seen)
    remedy = "set kafka.request.logger to DEBUG or TRACE; the shipper must not cut lines"
    return Finding("log bodies", BAD, seen, remedy)
