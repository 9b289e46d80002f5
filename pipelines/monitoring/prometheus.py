"""Health as Prometheus metrics, scraped from a run or written for node_exporter.

Times are absolute, not ages, so that a stopped pipeline is visible. Counters count the rows of the
current UTC day and start again with the next, which Prometheus reads as a restart. Labels are our
own names, never a client's.
"""

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quotaflow.pipelines import extras
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError, MissingToolError, NeverMadeError, QuotaflowError
from quotaflow.pipelines.monitoring import health
from quotaflow.pipelines.monitoring.job_health import JobHealth
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

_LOOPBACK = "127.0.0.1"
_MAX_PORT = 65_535
_FRESH_FOR = timedelta(seconds=15)
_NEVER = datetime.fromtimestamp(0, UTC)
_OUR_NAME = re.compile(r"[\w.-]{1,80}")
_ROWS = """
    SELECT counts.job, counts.target, counts.outcome, counts.reason, sum(counts.row_count) AS n
    FROM pipeline_progress AS counts
    INNER JOIN (
        SELECT DISTINCT query_id, batch_id FROM query_progress WHERE event_time >= '{midnight}'
    ) AS today ON counts.query_id = today.query_id AND counts.batch_id = today.batch_id
    GROUP BY 1, 2, 3, 4
"""
_JOB_GAUGES = {
    "last_trigger_timestamp_seconds": "When the job last checked its source for new data",
    "last_batch_timestamp_seconds": "When its last micro-batch started",
    "last_batch_duration_seconds": "How long its last micro-batch took",
    "newest_event_timestamp_seconds": "Time of the newest event it read",
    "processed_rows_per_second": "Rows per second of its last micro-batch",
    "behind_offsets": "Unread records of its topic when its last batch started",
    "behind_bytes": "Unread bytes of its table",
    "behind_seconds": "How long unread data has waited",
    "state_rows": "Rows in its state",
    "state_bytes": "Memory of its state",
    "problems": "How many bounds of conf it is past, 0 when healthy",
}
# Alerts of users name these: each is a copy of the metric that replaced it.
_DEPRECATED_JOB_GAUGES = {"last_look_timestamp_seconds": "last_trigger_timestamp_seconds"}
_DEPRECATED_GAUGES = {
    "configs_held": "configs_owned",
    "plan_changes_waiting": "plan_changes_pending",
}


@dataclass(slots=True, eq=False)
class MetricsCollector:
    """A collector of prometheus_client: reads the tables on a scrape, at most every 15 s."""

    conf: Conf
    _kept: list[Any] = field(default_factory=list)
    _read_at: datetime = _NEVER
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def collect(self) -> list[Any]:
        """Every metric as it is now."""
        now = datetime.now(UTC)
        with self._lock:
            if now - self._read_at >= _FRESH_FOR:
                self._kept, self._read_at = list(families(self.conf, now)), now
            return self._kept


@contextmanager
def exposed(conf: Conf, port: str | None, file: Path | None) -> Iterator[None]:
    """Serve metrics at `[host:]port`, loopback without a host, and write a file at the end.

    Raises ConfigError for an address in use, a file that cannot be written, or tables in a catalog,
    and MissingToolError without prometheus_client.
    """
    if port is None and file is None:
        yield
        return
    own = registry(conf)
    with nullcontext() if port is None else _served(own, port):
        try:
            yield
        finally:
            if file is not None:
                _write(own, file)


def registry(conf: Conf) -> Any:
    """A registry of prometheus_client with all metrics. Raises as `exposed` does."""
    try:
        from prometheus_client import CollectorRegistry  # noqa: PLC0415  an extra
    except ImportError:
        raise MissingToolError(
            f"prometheus_client is not installed: {extras.install('metrics')}"
        ) from None
    if conf.warehouse.catalog_schema:
        raise ConfigError(
            "metrics are read from the tables of a folder, and these are in the catalog "
            f"{conf.warehouse.catalog_schema}: alert on its view job_health"
        )
    own = CollectorRegistry()
    own.register(MetricsCollector(conf))
    return own


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
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415  an extra

    try:
        read = health.read(conf, now)
    except QuotaflowError:
        yield GaugeMetricFamily("quotaflow_up", "1 when the tables could be read", value=0)
        return
    yield GaugeMetricFamily("quotaflow_up", "1 when the tables could be read", value=1)
    for name, meaning in _JOB_GAUGES.items():
        yield _job_gauge(name, meaning, read, name)
    for name, replacement in _DEPRECATED_JOB_GAUGES.items():
        yield _job_gauge(name, _deprecated(f"job_{replacement}"), read, replacement)
    yield _rows(conf, now)
    gauges = {name: (meaning, value) for name, meaning, value in _gauges(read)}
    for name, (meaning, value) in gauges.items():
        yield GaugeMetricFamily(f"quotaflow_{name}", meaning, value=value)
    for name, replacement in _DEPRECATED_GAUGES.items():
        value = gauges[replacement][1]
        yield GaugeMetricFamily(f"quotaflow_{name}", _deprecated(replacement), value=value)
    yield _by("checks_failing", "Quality checks that fail", ["severity"], read.failed_checks)
    meaning = "Share of the disk that is free; label of is deprecated, use disk"
    yield _by("disk_free_ratio", meaning, ["disk", "of"], read.free_share)


def _deprecated(replacement: str) -> str:
    return f"Deprecated: use quotaflow_{replacement}"


def _job_gauge(
    name: str, meaning: str, report: health.HealthReport, source: str
) -> "GaugeMetricFamily":
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415  an extra

    family = GaugeMetricFamily(f"quotaflow_job_{name}", meaning, labels=["job"])
    for job in report.jobs:
        value = _job_values(job)[source]
        if value is not None:
            family.add_metric([_own(job.job)], value)
    return family


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


def _gauges(read: health.HealthReport) -> Iterator[tuple[str, str, float]]:
    yield "healthy", "1 when nothing is past a bound of conf", float(read.is_well)
    yield (
        "warehouse_locked",
        "1 while somebody writes the tables",
        float(read.lock_holder is not None),
    )
    yield (
        "feedback_stopped",
        "1 while a stop file prevents writing to the cluster",
        float(read.stop_reason is not None),
    )
    yield "configs_owned", "Configs of the cluster that have a value of ours", read.owned_configs
    yield "configs_overdue", "Configs that should have been restored", read.overdue_configs
    yield (
        "answers_failing",
        "Answers that could not be computed and keep old rows",
        len(read.failed_answers),
    )
    yield "alerts_open", "Open alerts on client metrics", read.open_alerts
    yield (
        "plan_changes_pending",
        "Changes of the newest plan that is not applied",
        read.pending_changes,
    )


def _rows(conf: Conf, now: datetime) -> "CounterMetricFamily":
    from prometheus_client.core import CounterMetricFamily  # noqa: PLC0415  an extra

    labels = ["job", "table", "outcome", "reason"]
    meaning = "Rows by outcome, of micro-batches since 00:00 UTC"
    family = CounterMetricFamily("quotaflow_rows", meaning, labels=labels)
    midnight = f"{now.astimezone(UTC):%Y-%m-%d}T00:00:00Z"
    try:
        rows = Reader(Warehouse(conf.warehouse)).rows(_ROWS.format(midnight=midnight))
    except NeverMadeError:
        rows = []
    for row in rows:
        label_values = [row["job"], row["target"], row["outcome"], row["reason"]]
        family.add_metric([_own(name) for name in label_values], row["n"])
    return family


def _by(
    name: str, meaning: str, labels: Sequence[str], values: Mapping[str, float]
) -> "GaugeMetricFamily":
    """A metric by key; each label has the key as its value."""
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415  an extra

    family = GaugeMetricFamily(f"quotaflow_{name}", meaning, labels=labels)
    for key, value in values.items():
        family.add_metric([_own(key)] * len(labels), value)
    return family


def _own(name: str | None) -> str:
    """A name of ours; any other text in a table becomes `other`."""
    return name if name and _OUR_NAME.fullmatch(name) else "" if not name else "other"


def _seconds(time: datetime | None) -> float | None:
    return time.timestamp() if time else None
