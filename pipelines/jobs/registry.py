"""All jobs of quotaflow: what each reads, what it fills, and how it starts."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from quotaflow.pipelines.compute.affected import counting
from quotaflow.pipelines.compute.maintainer import ResultMaintainer
from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.config.monitoring import Forward
from quotaflow.pipelines.facts import client_metrics, fetches, forward_metrics, otlp_receiver
from quotaflow.pipelines.facts.ingest import INGESTS
from quotaflow.pipelines.jobs.job import Job, JobEnvironment
from quotaflow.pipelines.results import declared
from quotaflow.pipelines.streaming import sinks, sources
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.declared import (
    ACTIVE_PRODUCERS,
    BROKERS,
    CLIENT_METRICS,
    FETCH_SESSIONS,
    FETCHES,
    PIPELINE_PROGRESS,
    QUARANTINE,
    REQUESTS,
    TELEMETRY_PUSHES,
    TELEMETRY_SUBSCRIPTIONS,
)

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def _ingest(
    job: str, topic: str, environment: JobEnvironment, trigger: sinks.Trigger
) -> "StreamingQuery":
    records = environment.records(job, topic)
    write = INGESTS[job](environment.conf, str(environment.cluster_id)).write
    return sinks.start(records, job, environment.warehouse, write, trigger)


def _client_metrics(environment: JobEnvironment, trigger: sinks.Trigger) -> "StreamingQuery":
    conf, warehouse = environment.conf, environment.warehouse
    pushes, needed = TELEMETRY_PUSHES.name, client_metrics.READ
    rows = sources.read_table(environment.spark, conf.results, warehouse, pushes, needed)
    once = client_metrics.each_push_once(rows, conf.results.max_lateness_s)
    write = client_metrics.PointIngest(conf).write
    return sinks.start(once, "client_metrics", warehouse, write, trigger)


def _fetches(environment: JobEnvironment, trigger: sinks.Trigger) -> "StreamingQuery":
    conf, warehouse = environment.conf, environment.warehouse
    rows = sources.read_table(environment.spark, conf.results, warehouse, REQUESTS.name, ["api"])
    arrived = fetches.arrivals(rows, warehouse)
    write = fetches.Fetches(conf.fetch_sessions, conf.results.task_memory_mb).write
    return sinks.start(arrived, "fetches", warehouse, write, trigger)


def _forward_metrics(environment: JobEnvironment, trigger: sinks.Trigger) -> "StreamingQuery":
    conf, warehouse = environment.conf, environment.warehouse
    table, needed = CLIENT_METRICS.name, forward_metrics.READ
    points = sources.read_table(environment.spark, conf.results, warehouse, table, needed)
    write = forward_metrics.PointForwarding(_forward(conf), _receiver(conf)).write
    return sinks.start(points, "forward_metrics", warehouse, write, trigger)


def _forward(conf: Conf) -> Forward:
    assert conf.monitoring.forward is not None
    return conf.monitoring.forward


def _receiver(conf: Conf) -> otlp_receiver.Endpoint:
    return otlp_receiver.endpoint(_forward(conf))


def result_job(name: str, doc: str, results: Callable[[Conf], tuple[Result, ...]]) -> Job:
    """The job that keeps results of the same facts up to date.

    The results declare what the job reads, fills and looks up. These do not depend on conf.
    """
    own = results(Conf())
    lookups = (lookup.table for result in own for lookup in result.lookups)
    return Job(
        name=name,
        doc=doc,
        reads=own[0].facts.name,
        fills=_distinct(*(result.table for result in own), PIPELINE_PROGRESS),
        looks_up=_distinct(*lookups),
        start=partial(_maintain, name, results),
        results=results,
    )


def _distinct(*tables: Table) -> tuple[Table, ...]:
    return tuple({table.name: table for table in tables}.values())


def _maintain(
    job: str,
    results: Callable[[Conf], tuple[Result, ...]],
    environment: JobEnvironment,
    trigger: sinks.Trigger,
) -> "StreamingQuery":
    maintainer = ResultMaintainer(results(environment.conf), environment.conf.results)
    table = maintainer.results[0].facts
    needed, _ = counting(maintainer.results, table.column_names, None)
    spark, conf = environment.spark, environment.conf
    facts = sources.read_table(spark, conf.results, environment.warehouse, table.name, needed)
    arrivals = maintainer.arrivals(facts)
    return sinks.start(arrivals, job, environment.warehouse, maintainer.write, trigger)


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
            looks_up=(BROKERS,),
            start=partial(_ingest, "ingest_request_log", "request_log_topic"),
            topic="request_log_topic",
        ),
        Job(
            name="ingest_receiver",
            doc="takes pushes that broker/TelemetryReceiver forwarded",
            reads="ingest.receiver_topic",
            fills=(TELEMETRY_PUSHES, QUARANTINE, PIPELINE_PROGRESS),
            start=partial(_ingest, "ingest_receiver", "receiver_topic"),
            topic="receiver_topic",
        ),
        Job(
            name="ingest_otlp",
            doc="takes batches of metrics from an OpenTelemetry Collector's Kafka exporter",
            reads="ingest.otlp_topic",
            fills=(TELEMETRY_PUSHES, QUARANTINE, PIPELINE_PROGRESS),
            start=partial(_ingest, "ingest_otlp", "otlp_topic"),
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
            name="forward_metrics",
            doc="sends the points of clients to a receiver of OTLP",
            reads=CLIENT_METRICS.name,
            fills=(PIPELINE_PROGRESS,),
            start=_forward_metrics,
            needs="monitoring.forward",
            receiver=_receiver,
        ),
        result_job(
            "request_results",
            "what follows from requests: producer ids (KIP-936), traffic, quotas, moves, groups",
            partial(declared.results_of, REQUESTS.name),
        ),
        result_job(
            "fetch_results",
            "what follows from fetches: who reads where, what fails (KIP-392), how much, lag",
            partial(declared.results_of, FETCHES.name),
        ),
        result_job(
            "active_producer_results",
            "what follows from snapshots of producers: when leaders first had ids (KIP-936)",
            partial(declared.results_of, ACTIVE_PRODUCERS.name),
        ),
        result_job(
            "metric_alerts",
            "client metrics above a threshold of conf for too long (KIP-714)",
            partial(declared.results_of, CLIENT_METRICS.name),
        ),
    )
}

GROUPS: dict[str, tuple[str, ...]] = {
    "facts": tuple(job.name for job in JOBS.values() if job.results is None),
    "results": tuple(job.name for job in JOBS.values() if job.results is not None),
}
"""Jobs by what they fill, under names that `run` takes too."""
