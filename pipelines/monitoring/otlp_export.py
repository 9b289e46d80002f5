"""Sends what Prometheus would scrape to an OTLP endpoint over HTTP, while a run goes on.

The endpoint may be slow, gone or hostile: a run never fails or waits for it, except for one last
export at its end. Values of headers are secrets: no message contains one.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import urllib3
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_CUMULATIVE,
    Metric,
    NumberDataPoint,
)
from urllib3.exceptions import HTTPError, LocationParseError
from urllib3.util import Timeout, parse_url

from quotaflow.pipelines.config import Conf, secrets
from quotaflow.pipelines.config.monitoring import OtlpTarget
from quotaflow.pipelines.errors import ConfigError, QuotaflowError
from quotaflow.pipelines.monitoring import prometheus
from quotaflow.pipelines.monitoring.webhook import is_loopback
from quotaflow.udfs.counted import counted

_KEY = "monitoring.otlp"
_TYPE = "application/x-protobuf"
_OK, _REDIRECT = 200, 300
_MAX_ANSWER_BYTES = 64 * 1024
_NANOSECONDS = 1_000_000_000
_LAST_EXPORTS = 3
"""At the end one may go on, and one follows; each opens a connection and reads."""
_UNITS = {"seconds": "s", "bytes": "By", "ratio": "1"}


@dataclass(slots=True)
class Exporter:
    """Exports metrics, and says a problem once, until it is another one or over."""

    url: str = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    pool: urllib3.PoolManager
    families: Callable[[], Iterable[Any]]
    cluster_id: str | None
    say: Callable[[str], None]
    _problem: str | None = None

    def export(self, now: datetime) -> None:
        """Send all metrics as they are now."""
        try:
            problem = self._posted(request(self.families(), self.cluster_id, now))
        except QuotaflowError as error:
            problem = str(error)
        if problem != self._problem:
            self.say(f"{_KEY}: {problem}" if problem else f"{_KEY}: metrics are taken again")
        self._problem = problem

    def _posted(self, message: ExportMetricsServiceRequest) -> str | None:
        """Why the endpoint did not take it; None if it did."""
        try:
            answer = self.pool.request(
                "POST",
                self.url,
                body=message.SerializeToString(),
                headers={**self.headers, "Content-Type": _TYPE},
                redirect=False,
                retries=False,
                preload_content=False,
            )
            content = answer.read(_MAX_ANSWER_BYTES)
            answer.close()
        except HTTPError as error:
            return f"the endpoint was not reached: {type(error).__name__}"
        if not _OK <= answer.status < _REDIRECT:
            return f"the endpoint answered {answer.status}"
        rejected = _rejected(content)
        return f"the endpoint rejected {counted(rejected, 'data point')}" if rejected else None


@contextmanager
def exported(conf: Conf, say: Callable[[str], None]) -> Iterator[None]:
    """Export metrics every `monitoring.otlp.interval_s`, and at the end, if conf has an endpoint.

    Raises ConfigError for a forbidden address or tables in a catalog, and MissingToolError without
    prometheus_client.
    """
    target = conf.monitoring.otlp
    if target is None:
        yield
        return
    exporter = _exporter(conf, target, say)
    ended = threading.Event()
    # An endpoint that answers byte by byte must not keep the process alive.
    thread = threading.Thread(
        target=_repeat, args=(exporter, ended, target.interval_s), daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_LAST_EXPORTS * target.timeout_s)


def _repeat(exporter: Exporter, ended: threading.Event, interval_s: int) -> None:
    """Export until the run has ended, and once more."""
    while not ended.wait(interval_s):
        exporter.export(datetime.now(UTC))
    exporter.export(datetime.now(UTC))


def _exporter(conf: Conf, target: OtlpTarget, say: Callable[[str], None]) -> Exporter:
    url = secrets.look_up(f"{_KEY}.url", target.url).strip()
    headers = {
        name: secrets.look_up(f"{_KEY}.headers.{name}", value)
        for name, value in target.headers.items()
    }
    _check(url, has_headers=bool(headers))
    timeout = Timeout(total=target.timeout_s)
    pool = urllib3.PoolManager(timeout=timeout, headers={"User-Agent": "quotaflow"})
    families = prometheus.registry(conf).collect
    return Exporter(url, headers, pool, families, conf.kafka.cluster_id, say)


def _check(url: str, *, has_headers: bool) -> None:
    try:
        parts = parse_url(url)
    except LocationParseError:
        parts = None
    if parts is None or not parts.host or parts.scheme not in {"http", "https"}:
        raise ConfigError(f"{_KEY}.url is no address such as https://host:4318/v1/metrics")
    if parts.auth is not None:
        raise ConfigError(f"{_KEY}.url has a login: use {_KEY}.headers")
    if parts.scheme == "http" and has_headers and not is_loopback(parts.host):
        raise ConfigError(f"{_KEY}.url is plain http: headers go by https only, or to this machine")


def request(
    families: Iterable[Any], cluster_id: str | None, now: datetime
) -> ExportMetricsServiceRequest:
    """Families of prometheus_client as OTLP. Counters begin at 00:00 UTC, as ours do.

    Labels without a value are left out.
    """
    message = ExportMetricsServiceRequest()
    of_resource = message.resource_metrics.add()
    attributes = {"service.name": "quotaflow", "service.version": version("quotaflow")}
    if cluster_id:
        attributes["kafka.cluster.id"] = cluster_id
    for key, value in attributes.items():
        of_resource.resource.attributes.add(key=key).value.string_value = value
    of_scope = of_resource.scope_metrics.add()
    of_scope.scope.name = "quotaflow"
    for family in families:
        if family.samples:
            _fill(of_scope.metrics.add(), family, now)
    return message


def _fill(metric: Metric, family: Any, now: datetime) -> None:
    metric.name, metric.description = family.name, family.documentation
    metric.unit = _UNITS.get(family.name.rpartition("_")[2], "")
    points = metric.gauge.data_points
    start = None
    if family.type == "counter":
        metric.sum.aggregation_temporality = AGGREGATION_TEMPORALITY_CUMULATIVE
        metric.sum.is_monotonic = True
        points = metric.sum.data_points
        start = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for sample in family.samples:
        point: NumberDataPoint = points.add(as_double=sample.value, time_unix_nano=_nanos(now))
        if start is not None:
            point.start_time_unix_nano = _nanos(start)
        for key, value in sample.labels.items():
            if value:
                point.attributes.add(key=key).value.string_value = value


def _nanos(time: datetime) -> int:
    return int(time.timestamp()) * _NANOSECONDS + time.microsecond * 1_000


def _rejected(content: bytes) -> int:
    """How many data points the endpoint rejects, by an answer that may be anything."""
    try:
        answer = ExportMetricsServiceResponse.FromString(content)
    except DecodeError:
        return 0
    return answer.partial_success.rejected_data_points
