"""Checks the newest records of telemetry: payloads that can be read, and points with a client."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.doctor.cluster_probe import Probe
from quotaflow.pipelines.doctor.finding import BAD, OK, WARNING, Finding, from_error
from quotaflow.pipelines.errors import QuotaflowError
from quotaflow.pipelines.kafka import record_batches, tail
from quotaflow.pipelines.kafka.admin import Cluster
from quotaflow.schemas.tables.declared import CLIENT_METRICS
from quotaflow.udfs.counted import counted
from quotaflow.udfs.facts import telemetry_pushes
from quotaflow.udfs.facts.receiver import ReadPushes
from quotaflow.udfs.otlp import decode

_MAX_RECORDS = 10
_WITHIN_S = 8
_QUARANTINE = "`quotaflow show quarantine` has each with its place"


@dataclass(frozen=True, slots=True)
class Route:
    """A topic of telemetry: its key in conf, how its records are read, and whose they should be."""

    key: str
    subject: str
    unopened: ReadPushes
    cure: str


RECEIVER = Route(
    "receiver_topic",
    "telemetry records",
    telemetry_pushes.from_receiver,
    "let broker/TelemetryReceiver.java write this topic, and name a Collector's topic in "
    "ingest.otlp_topic",
)
COLLECTOR = Route(
    "otlp_topic",
    "Collector records",
    telemetry_pushes.from_collector,
    "add the receiver's headers to resources: header_extraction of the Kafka receiver, as in "
    "broker/otel-collector-metrics.yaml",
)


def findings(probe: Probe, cluster: Cluster) -> Iterator[Finding]:
    """Findings on the newest records of both topics."""
    for route in (RECEIVER, COLLECTOR):
        topic = cluster.topics.get(getattr(probe.conf.ingest, route.key) or "")
        if topic is None:
            continue
        partitions = {topic.name: topic.partitions}
        try:
            records = tail.newest(probe.conf.kafka.login, partitions, _MAX_RECORDS, _WITHIN_S)
        except QuotaflowError as error:
            yield from_error(route.subject, error)
            continue
        yield of_records(records, route, probe.conf, datetime.now(UTC))


def of_records(records: Sequence[Any], route: Route, conf: Conf, now: datetime) -> Finding:
    """What is wrong with some records of kafka-python, as the ingest job reads them."""
    if not records:
        return Finding(route.subject, OK, "the topic has none")
    batch = record_batches.of_records(records)
    limits = conf.payloads.limits
    unopened = route.unopened(batch, conf.ingest.max_line_bytes, now)
    pushes = telemetry_pushes.opened(unopened, limits, None)
    points = pa.Table.from_batches(
        decode.decode_pushes(limits)(iter(pushes.combine_chunks().to_batches())),
        CLIENT_METRICS.arrow,
    )
    unreadable = Counter(
        (reason, detail)
        for reason, detail in zip(
            pushes["unreadable_reason"].to_pylist(),
            pushes["unreadable_detail"].to_pylist(),
            strict=True,
        )
        if reason is not None
    )
    of_nobody = points["client_instance_id"].null_count
    seen = f"of the newest {len(records)}: {counted(points.num_rows, 'point')}, "
    seen += f"{of_nobody:,} of no client"
    if unreadable:
        return _unreadable(route, seen, unreadable, len(records))
    if of_nobody:
        state = BAD if of_nobody == points.num_rows else WARNING
        return Finding(route.subject, state, seen, route.cure)
    return Finding(route.subject, OK, seen)


def _unreadable(
    route: Route, seen: str, reasons: Counter[tuple[str, str | None]], count: int
) -> Finding:
    (reason, detail), _ = reasons.most_common(1)[0]
    total = reasons.total()
    why = f"{reason} ({detail})" if detail else reason
    state = BAD if total == count else WARNING
    return Finding(
        route.subject, state, f"{seen}; {total} cannot be read, such as {why}", _QUARANTINE
    )
