"""Every query of quotaflow on one screen: what it reads, what it fills, and how it starts."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from quotaflow.pipelines import sinks, sources
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.facts import client_metrics, fetches, ingest, telemetry_pushes
from quotaflow.pipelines.incremental import Keeper
from quotaflow.pipelines.job import Job, Setting
from quotaflow.pipelines.results import (
    config_alterations,
    fetch_faults,
    fetch_sizes,
    metric_alerts,
    offset_lookups,
    preferred_replicas,
    producer_id_activations,
    producer_id_rates,
    producer_id_uses,
    quota_usage,
    rack_traffic,
    reassignment_changes,
    replica_lag,
    replica_offsets,
    replication_rates,
    replication_throttles,
    replication_traffic,
    topic_names,
    traffic,
)
from quotaflow.pipelines.results.result import Result
from quotaflow.schemas import tables

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def _ingest_request_log(setting: Setting, trigger: sinks.Trigger) -> "StreamingQuery":
    records = setting.records("ingest_request_log", "request_log_topic")
    write = ingest.RequestLog(setting.conf, str(setting.cluster_id)).write
    return sinks.start(records, "ingest_request_log", setting.warehouse, write, trigger)


def _ingest_pushes(
    job: str, topic: str, read: ingest.ReadPushes, setting: Setting, trigger: sinks.Trigger
) -> "StreamingQuery":
    records = setting.records(job, topic)
    write = ingest.Pushes(setting.conf, str(setting.cluster_id), read).write
    return sinks.start(records, job, setting.warehouse, write, trigger)


def _client_metrics(setting: Setting, trigger: sinks.Trigger) -> "StreamingQuery":
    conf, pushes = setting.conf, tables.TELEMETRY_PUSHES.name
    rows = sources.read_table(setting.spark, conf, setting.warehouse, pushes)
    once = client_metrics.each_push_once(rows, conf.results.max_lateness_s)
    write = client_metrics.Points(conf).write
    return sinks.start(once, "client_metrics", setting.warehouse, write, trigger)


def _fetches(setting: Setting, trigger: sinks.Trigger) -> "StreamingQuery":
    conf, requests = setting.conf, tables.REQUESTS.name
    rows = sources.read_table(setting.spark, conf, setting.warehouse, requests)
    write = fetches.Fetches(conf.fetch_sessions).write
    return sinks.start(fetches.lines(rows), "fetches", setting.warehouse, write, trigger)


def _keep(
    job: str,
    results: Callable[[Conf], tuple[Result, ...]],
    setting: Setting,
    trigger: sinks.Trigger,
) -> "StreamingQuery":
    kept = results(setting.conf)
    name = kept[0].facts.name
    facts = sources.read_table(setting.spark, setting.conf, setting.warehouse, name)
    keeper = Keeper(kept, setting.conf)
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
    return (metric_alerts.result(conf.alerts),)


JOBS: dict[str, Job] = {
    job.name: job
    for job in (
        Job(
            name="ingest_request_log",
            doc="parses each request-log line once and routes it to its tables",
            reads="ingest.request_log_topic",
            fills=(
                tables.REQUESTS,
                tables.TELEMETRY_PUSHES,
                tables.TELEMETRY_SUBSCRIPTIONS,
                tables.QUARANTINE,
                tables.PIPELINE_PROGRESS,
            ),
            start=_ingest_request_log,
            topic="request_log_topic",
        ),
        Job(
            name="ingest_receiver",
            doc="takes pushes that broker/TelemetryReceiver forwarded",
            reads="ingest.receiver_topic",
            fills=(tables.TELEMETRY_PUSHES, tables.QUARANTINE, tables.PIPELINE_PROGRESS),
            start=partial(
                _ingest_pushes, "ingest_receiver", "receiver_topic", telemetry_pushes.from_receiver
            ),
            topic="receiver_topic",
        ),
        Job(
            name="ingest_otlp",
            doc="takes batches of metrics from an OpenTelemetry Collector's Kafka exporter",
            reads="ingest.otlp_topic",
            fills=(tables.TELEMETRY_PUSHES, tables.QUARANTINE, tables.PIPELINE_PROGRESS),
            start=partial(
                _ingest_pushes, "ingest_otlp", "otlp_topic", telemetry_pushes.from_collector
            ),
            topic="otlp_topic",
        ),
        Job(
            name="client_metrics",
            doc="decodes pushed payloads to one row per data point",
            reads=tables.TELEMETRY_PUSHES.name,
            fills=(tables.CLIENT_METRICS, tables.PIPELINE_PROGRESS),
            start=_client_metrics,
        ),
        Job(
            name="fetches",
            doc="completes fetches with what their sessions say they asked for (KIP-227)",
            reads=tables.REQUESTS.name,
            fills=(tables.FETCHES, tables.FETCH_SESSIONS, tables.PIPELINE_PROGRESS),
            start=_fetches,
        ),
        Job(
            name="request_results",
            doc="what follows from requests: producer ids (KIP-936), traffic, quotas, moves",
            reads=tables.REQUESTS.name,
            fills=(
                tables.PRODUCER_ID_USES,
                tables.PRODUCER_ID_RATES,
                tables.TRAFFIC,
                tables.TOPIC_NAMES,
                tables.QUOTA_USAGE,
                tables.RACK_TRAFFIC,
                tables.REASSIGNMENT_CHANGES,
                tables.CONFIG_ALTERATIONS,
                tables.REPLICATION_TRAFFIC,
                tables.REPLICATION_RATES,
                tables.REPLICATION_THROTTLES,
                tables.OFFSET_LOOKUPS,
                tables.PIPELINE_PROGRESS,
            ),
            looks_up=(
                tables.BROKERS,
                tables.TOPICS,
                tables.SETTINGS,
                tables.CLIENT_QUOTAS,
                tables.CONFIGS,
                tables.REPLICAS,
            ),
            start=partial(_keep, "request_results", _of_requests),
            appends=False,
            results=_of_requests,
        ),
        Job(
            name="fetch_results",
            doc="what follows from fetches: who reads where, what fails (KIP-392), how much, lag",
            reads=tables.FETCHES.name,
            fills=(
                tables.PREFERRED_REPLICAS,
                tables.FETCH_SIZES,
                tables.REPLICA_LAG,
                tables.REPLICA_OFFSETS,
                tables.FETCH_FAULTS,
                tables.PIPELINE_PROGRESS,
            ),
            looks_up=(
                tables.REPLICAS,
                tables.BROKERS,
                tables.TOPICS,
                tables.CONFIGS,
                tables.CLIENT_QUOTAS,
            ),
            start=partial(_keep, "fetch_results", _of_fetches),
            appends=False,
            results=_of_fetches,
        ),
        Job(
            name="active_producer_results",
            doc="what follows from snapshots of producers: when leaders first held ids (KIP-936)",
            reads=tables.ACTIVE_PRODUCERS.name,
            fills=(tables.PRODUCER_ID_RATES, tables.PIPELINE_PROGRESS),
            start=partial(_keep, "active_producer_results", _of_active_producers),
            looks_up=(tables.PRODUCER_ID_USES,),
            appends=False,
            results=_of_active_producers,
        ),
        Job(
            name="metric_alerts",
            doc="client metrics past a bound of conf for too long (KIP-714)",
            reads=tables.CLIENT_METRICS.name,
            fills=(tables.METRIC_ALERT_EVENTS, tables.PIPELINE_PROGRESS),
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
