"""Every query of quotaflow on one screen: what it reads, what it fills, and how it starts."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.facts import client_metrics, fetches, ingest, telemetry_pushes
from quotaflow.pipelines.incremental.maintainer import ResultMaintainer
from quotaflow.pipelines.incremental.result import Result
from quotaflow.pipelines.jobs.job import Job, JobEnvironment
from quotaflow.pipelines.results import (
    config_alterations,
    metric_alert_events,
    topic_names,
    traffic,
)
from quotaflow.pipelines.results.producer_ids import (
    producer_id_activations,
    producer_id_rates,
    producer_id_uses,
)
from quotaflow.pipelines.results.quotas import quota_usage
from quotaflow.pipelines.results.reads import (
    fetch_faults,
    fetch_sizes,
    offset_lookups,
    preferred_replicas,
    rack_traffic,
    replica_offsets,
)
from quotaflow.pipelines.results.replication import (
    reassignment_changes,
    replica_lag,
    replication_rates,
    replication_throttles,
    replication_traffic,
)
from quotaflow.pipelines.streaming import sinks, sources
from quotaflow.schemas.tables.config_alterations import CONFIG_ALTERATIONS
from quotaflow.schemas.tables.control import PIPELINE_PROGRESS, QUARANTINE
from quotaflow.schemas.tables.fetch_sizes import FETCH_SIZES
from quotaflow.schemas.tables.fetches import FETCH_SESSIONS, FETCHES
from quotaflow.schemas.tables.producer_ids import PRODUCER_ID_RATES, PRODUCER_ID_USES
from quotaflow.schemas.tables.quotas import QUOTA_USAGE
from quotaflow.schemas.tables.read_faults import FETCH_FAULTS, OFFSET_LOOKUPS, REPLICA_OFFSETS
from quotaflow.schemas.tables.reassignments import REASSIGNMENT_CHANGES, REPLICA_LAG
from quotaflow.schemas.tables.replicas import PREFERRED_REPLICAS, RACK_TRAFFIC
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.snapshots import ACTIVE_PRODUCERS, CLIENT_QUOTAS, CONFIGS, SETTINGS
from quotaflow.schemas.tables.telemetry import (
    CLIENT_METRICS,
    METRIC_ALERT_EVENTS,
    TELEMETRY_PUSHES,
    TELEMETRY_SUBSCRIPTIONS,
)
from quotaflow.schemas.tables.throttles import (
    REPLICATION_RATES,
    REPLICATION_THROTTLES,
    REPLICATION_TRAFFIC,
)
from quotaflow.schemas.tables.topology import BROKERS, REPLICAS, TOPICS
from quotaflow.schemas.tables.traffic import TOPIC_NAMES, TRAFFIC

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def _ingest_request_log(setting: JobEnvironment, trigger: sinks.Trigger) -> "StreamingQuery":
    records = setting.records("ingest_request_log", "request_log_topic")
    write = ingest.RequestLogIngest(setting.conf, str(setting.cluster_id)).write
    return sinks.start(records, "ingest_request_log", setting.warehouse, write, trigger)


def _ingest_pushes(
    job: str, topic: str, read: ingest.ReadPushes, setting: JobEnvironment, trigger: sinks.Trigger
) -> "StreamingQuery":
    records = setting.records(job, topic)
    write = ingest.PushIngest(setting.conf, str(setting.cluster_id), read).write
    return sinks.start(records, job, setting.warehouse, write, trigger)


def _client_metrics(setting: JobEnvironment, trigger: sinks.Trigger) -> "StreamingQuery":
    conf, pushes = setting.conf, TELEMETRY_PUSHES.name
    rows = sources.read_table(setting.spark, conf, setting.warehouse, pushes)
    once = client_metrics.each_push_once(rows, conf.results.max_lateness_s)
    write = client_metrics.PointIngest(conf).write
    return sinks.start(once, "client_metrics", setting.warehouse, write, trigger)


def _fetches(setting: JobEnvironment, trigger: sinks.Trigger) -> "StreamingQuery":
    conf, requests = setting.conf, REQUESTS.name
    rows = sources.read_table(setting.spark, conf, setting.warehouse, requests)
    write = fetches.Fetches(conf.fetch_sessions).write
    return sinks.start(fetches.lines(rows), "fetches", setting.warehouse, write, trigger)


def _keep(
    job: str,
    results: Callable[[Conf], tuple[Result, ...]],
    setting: JobEnvironment,
    trigger: sinks.Trigger,
) -> "StreamingQuery":
    kept = results(setting.conf)
    name = kept[0].facts.name
    facts = sources.read_table(setting.spark, setting.conf, setting.warehouse, name)
    keeper = ResultMaintainer(kept, setting.conf)
    arrived = keeper.arrivals(facts)
    return sinks.start(arrived, job, setting.warehouse, keeper.write, trigger)


def _of_requests(conf: Conf) -> tuple[Result, ...]:
    return (
        producer_id_uses.result(),
        producer_id_rates.result(conf.producer_ids),
        traffic.result(),
        topic_names.result(),
        quota_usage.result(conf.quotas),
        rack_traffic.result(conf.racks),
        reassignment_changes.result(),
        config_alterations.result(),
        replication_traffic.result(),
        replication_rates.result(),
        replication_throttles.result(),
        offset_lookups.result(),
    )


def _of_fetches(conf: Conf) -> tuple[Result, ...]:
    return (
        preferred_replicas.result(conf.racks),
        fetch_sizes.result(conf.quotas),
        replica_lag.result(),
        replica_offsets.result(),
        fetch_faults.result(),
    )


def _of_active_producers(conf: Conf) -> tuple[Result, ...]:
    return (producer_id_activations.result(conf.producer_ids),)


def _of_client_metrics(conf: Conf) -> tuple[Result, ...]:
    return (metric_alert_events.result(conf.alerts),)


JOBS: dict[str, Job] = {
    job.name: job
    for job in (
        Job(
            name="ingest_request_log",
            doc="parses each request-log line once and routes it to its tables",
            reads="ingest.request_log_topic",
            fills=(
                REQUESTS,
                TELEMETRY_PUSHES,
                TELEMETRY_SUBSCRIPTIONS,
                QUARANTINE,
                PIPELINE_PROGRESS,
            ),
            start=_ingest_request_log,
            topic="request_log_topic",
        ),
        Job(
            name="ingest_receiver",
            doc="takes pushes that broker/TelemetryReceiver forwarded",
            reads="ingest.receiver_topic",
            fills=(TELEMETRY_PUSHES, QUARANTINE, PIPELINE_PROGRESS),
            start=partial(
                _ingest_pushes, "ingest_receiver", "receiver_topic", telemetry_pushes.from_receiver
            ),
            topic="receiver_topic",
        ),
        Job(
            name="ingest_otlp",
            doc="takes batches of metrics from an OpenTelemetry Collector's Kafka exporter",
            reads="ingest.otlp_topic",
            fills=(TELEMETRY_PUSHES, QUARANTINE, PIPELINE_PROGRESS),
            start=partial(
                _ingest_pushes, "ingest_otlp", "otlp_topic", telemetry_pushes.from_collector
            ),
            topic="otlp_topic",
        ),
        Job(
            name="client_metrics",
            doc="decodes pushed payloads to one row per data point",
            reads=TELEMETRY_PUSHES.name,
            fills=(CLIENT_METRICS, PIPELINE_PROGRESS),
            start=_client_metrics,
        ),
        Job(
            name="fetches",
            doc="completes fetches with what their sessions say they asked for (KIP-227)",
            reads=REQUESTS.name,
            fills=(FETCHES, FETCH_SESSIONS, PIPELINE_PROGRESS),
            start=_fetches,
        ),
        Job(
            name="request_results",
            doc="what follows from requests: producer ids (KIP-936), traffic, quotas, moves",
            reads=REQUESTS.name,
            fills=(
                PRODUCER_ID_USES,
                PRODUCER_ID_RATES,
                TRAFFIC,
                TOPIC_NAMES,
                QUOTA_USAGE,
                RACK_TRAFFIC,
                REASSIGNMENT_CHANGES,
                CONFIG_ALTERATIONS,
                REPLICATION_TRAFFIC,
                REPLICATION_RATES,
                REPLICATION_THROTTLES,
                OFFSET_LOOKUPS,
                PIPELINE_PROGRESS,
            ),
            looks_up=(
                BROKERS,
                TOPICS,
                SETTINGS,
                CLIENT_QUOTAS,
                CONFIGS,
                REPLICAS,
            ),
            start=partial(_keep, "request_results", _of_requests),
            appends=False,
            results=_of_requests,
        ),
        Job(
            name="fetch_results",
            doc="what follows from fetches: who reads where, what fails (KIP-392), how much, lag",
            reads=FETCHES.name,
            fills=(
                PREFERRED_REPLICAS,
                FETCH_SIZES,
                REPLICA_LAG,
                REPLICA_OFFSETS,
                FETCH_FAULTS,
                PIPELINE_PROGRESS,
            ),
            looks_up=(
                REPLICAS,
                BROKERS,
                TOPICS,
                CONFIGS,
                CLIENT_QUOTAS,
            ),
            start=partial(_keep, "fetch_results", _of_fetches),
            appends=False,
            results=_of_fetches,
        ),
        Job(
            name="active_producer_results",
            doc="what follows from snapshots of producers: when leaders first held ids (KIP-936)",
            reads=ACTIVE_PRODUCERS.name,
            fills=(PRODUCER_ID_RATES, PIPELINE_PROGRESS),
            start=partial(_keep, "active_producer_results", _of_active_producers),
            looks_up=(PRODUCER_ID_USES,),
            appends=False,
            results=_of_active_producers,
        ),
        Job(
            name="metric_alerts",
            doc="client metrics past a bound of conf for too long (KIP-714)",
            reads=CLIENT_METRICS.name,
            fills=(METRIC_ALERT_EVENTS, PIPELINE_PROGRESS),
            start=partial(_keep, "metric_alerts", _of_client_metrics),
            appends=False,
            results=_of_client_metrics,
        ),
    )
}

GROUPS: dict[str, tuple[str, ...]] = {
    "facts": tuple(job.name for job in JOBS.values() if job.results is None),
    "results": tuple(job.name for job in JOBS.values() if job.results is not None),
}
"""Jobs by what they fill, under names that `run` takes too."""
