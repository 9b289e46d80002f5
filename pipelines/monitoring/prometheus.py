"""Health as Prometheus metrics, scraped from a run or written for node_exporter.

own_metrics.py declares them. Times are absolute, not ages, so that a stopped pipeline is visible.
Counters count the rows of the current UTC day and start again with the next, which Prometheus reads
as a restart. Labels are our own names, and a client's only where conf exports an answer
(answer_metrics.py).
"""

import re
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quotaflow.pipelines import extras
from quotaflow.pipelines.areas.pipeline import ROWS_OF_TODAY
from quotaflow.pipelines.areas.question import filled
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError, MissingToolError, NeverMadeError, QuotaflowError
from quotaflow.pipelines.monitoring import answer_metrics, health, otlp
from quotaflow.pipelines.monitoring.job_health import JobHealth
from quotaflow.pipelines.monitoring.own_metrics import OWN_METRICS, PREFIX, OwnMetric
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.sql_literals import literal

if TYPE_CHECKING:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

Sample = tuple[list[str | None], float | None]
_LOOPBACK = "127.0.0.1"
_MAX_PORT = 65_535
_FRESH_FOR, _ANSWERS_FRESH_FOR = timedelta(seconds=15), timedelta(seconds=60)
_NEVER = datetime.fromtimestamp(0, UTC)
_OUR_NAME = re.compile(r"[\w.-]{1,80}")


@dataclass(slots=True, eq=False)
class MetricsCollector:
    """A collector of prometheus_client: reads the tables on a scrape, at most every 15 s.

    Answers, which change about once a minute, at most so often.
    """

    conf: Conf
    _kept: list[Any] = field(default_factory=list)
    _of_answers: list[Any] = field(default_factory=list)
    _read_at: datetime = _NEVER
    _answers_read_at: datetime = _NEVER
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def collect(self) -> list[Any]:
        """Every metric as it is now."""
        now = datetime.now(UTC)
        with self._lock:
            if now - self._read_at >= _FRESH_FOR:
                self._kept, self._read_at = list(families(self.conf, now)), now
            if now - self._answers_read_at >= _ANSWERS_FRESH_FOR:
                self._of_answers = list(families_of_answers(self.conf, now))
                self._answers_read_at = now
            return [*self._kept, *self._of_answers]


@contextmanager
def exposed(
    conf: Conf, port: str | None, file: Path | None, *, by_otlp: bool = False
) -> Iterator[None]:
    """Serve metrics at `[host:]port`, loopback without a host, and write a file at the end.

    With `by_otlp` they are also exported (otlp.py). Raises ConfigError for an address in use, a
    file that cannot be written, and MissingToolError without prometheus_client or the SDK.
    """
    if port is None and file is None and not by_otlp:
        yield
        return
    own, collector = registry(conf)
    with (
        nullcontext() if port is None else _served(own, port),
        otlp.exported(collector.collect) if by_otlp else nullcontext(),
    ):
        try:
            yield
        finally:
            if file is not None:
                _write(own, file)


def registry(conf: Conf) -> tuple[Any, MetricsCollector]:
    """A registry of prometheus_client, and its collector of all. Raises as `exposed` does."""
    try:
        from prometheus_client import CollectorRegistry  # noqa: PLC0415  an extra
    except ImportError:
        raise MissingToolError(
            f"prometheus_client is not installed: {extras.install('metrics')}"
        ) from None
    own = CollectorRegistry()
    collector = MetricsCollector(conf)
    own.register(collector)
    return own, collector


@contextmanager
def _served(registry: Any, at: str) -> Iterator[None]:
    """Answer scrapes in threads of the server."""
    from prometheus_client import start_http_server  # noqa: PLC0415  an extra

    host, _, port = at.rpartition(":")
    if not port.isdecimal() or int(port) > _MAX_PORT:
        raise ConfigError(f"--metrics-port {at}: write a port, such as 9464, or HOST:PORT")
    try:
        server, thread = start_http_server(int(port), addr=host or _LOOPBACK, registry=registry)
    except OSError as error:
        raise ConfigError(f"--metrics-port {at}: {error.strerror}: give another port") from None
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _write(registry: Any, file: Path) -> None:
    """Replace the file in one step: node_exporter may read it at any time."""
    from prometheus_client import write_to_textfile  # noqa: PLC0415  an extra

    try:
        write_to_textfile(str(file), registry)
    except OSError as error:
        raise ConfigError(f"--metrics-file {file} cannot be written: {error.strerror}") from None


def families(conf: Conf, now: datetime) -> "Iterator[GaugeMetricFamily | CounterMetricFamily]":
    """Every metric, read from tables, checkpoints and the lock at a time."""
    try:
        samples = _samples(health.read(conf, now))
        samples |= {"up": [([], 1)], "rows": list(_rows(conf, now))}
    except QuotaflowError:
        yield _family(OWN_METRICS["up"], [([], 0)])
        return
    for name, metric in OWN_METRICS.items():
        yield _family(metric, samples[name])


def families_of_answers(conf: Conf, now: datetime) -> "Iterator[GaugeMetricFamily]":
    """The metrics of the answers that conf exports; none where the tables cannot be read."""
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415  an extra

    exports = conf.monitoring.export
    try:
        read = list(answer_metrics.samples(exports, open_reader(conf), now)) if exports else []
    except QuotaflowError:
        return
    for metric, samples in read:
        family = GaugeMetricFamily(metric.full_name, metric.meaning, labels=metric.labels)
        for label_values, value in samples:
            family.add_metric(label_values, value)
        yield family


def _family(
    metric: OwnMetric, samples: Sequence[Sample]
) -> "GaugeMetricFamily | CounterMetricFamily":
    """The metric with its samples."""
    from prometheus_client.core import (  # noqa: PLC0415  an extra
        CounterMetricFamily,
        GaugeMetricFamily,
    )

    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = kind(f"{PREFIX}{metric.name}", metric.meaning, labels=metric.labels)
    for label_values, value in samples:
        if value is not None:
            family.add_metric([_own(each) for each in label_values], value)
    return family


def _samples(read: health.HealthReport) -> dict[str, list[Sample]]:
    """Samples by the metric's name: values of its labels, and its value, null if it has none."""
    samples: dict[str, list[Sample]] = {name: [] for name in OWN_METRICS}
    for job in read.jobs:
        for name, value in _job_values(job).items():
            samples[f"job_{name}"].append(([job.job], value))
    for name, value in _values(read).items():
        samples[name].append(([], value))
    samples["checks_failing"] = [([severity], n) for severity, n in read.failed_checks.items()]
    symptoms = Counter(row["symptom"] for row in read.incidents)
    samples["incidents_open"] = [([symptom], n) for symptom, n in sorted(symptoms.items())]
    samples["disk_free_ratio"] = [([disk], share) for disk, share in read.free_share.items()]
    return samples


def _job_values(job: JobHealth) -> dict[str, float | None]:
    return {
        "last_trigger_timestamp_seconds": _seconds(job.last_trigger),
        "last_batch_timestamp_seconds": _seconds(job.last_batch),
        "last_batch_duration_seconds": job.duration_ms / 1_000 if job.duration_ms else None,
        "newest_event_timestamp_seconds": _seconds(job.newest_event),
        "processed_rows_per_second": job.rows_per_s,
        "behind_offsets": job.behind_offsets,
        "behind_bytes": job.behind_bytes,
        "behind_seconds": job.behind_s,
        "state_rows": job.state_rows,
        "state_bytes": job.state_bytes,
        "problems": len(job.problems),
    }


def _values(read: health.HealthReport) -> dict[str, float]:
    return {
        "healthy": float(read.is_well),
        "warehouse_locked": float(read.lock_holder is not None),
        "feedback_stopped": float(read.stop_reason is not None),
        "configs_owned": read.owned_configs,
        "configs_overdue": read.overdue_configs,
        "answers_failing": len(read.failed_answers),
        "alerts_open": read.open_alerts,
        "plan_changes_pending": read.pending_changes,
    }


def _rows(conf: Conf, now: datetime) -> Iterator[Sample]:
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        rows = open_reader(conf).rows(filled(ROWS_OF_TODAY, {"since": literal(midnight)}))
    except NeverMadeError:
        return
    for row in rows:
        yield [row["job"], row["target"], row["outcome"], row["reason"]], row["n"]


def _own(name: str | None) -> str:
    """A name of ours; any other text in a table becomes `other`."""
    return name if name and _OUR_NAME.fullmatch(name) else "" if not name else "other"


def _seconds(time: datetime | None) -> float | None:
    return time.timestamp() if time else None
