"""Runs all checks of doctor: machine, tables, cluster."""

from collections.abc import Iterator
from datetime import UTC, datetime

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.doctor import machine, stored_tables
from quotaflow.pipelines.doctor.finding import BAD, OK, Finding, from_error
from quotaflow.pipelines.errors import QuotaflowError


def examine(conf: Conf) -> Iterator[Finding]:
    """Run all checks in turn. They only read, and download nothing."""
    yield from machine.findings(conf)
    yield from stored_tables.findings(conf, datetime.now(UTC))
    yield from _cluster(conf)


def _cluster(conf: Conf) -> Iterator[Finding]:
    # kafka-python is slow to import.
    from quotaflow.pipelines.doctor import (  # noqa: PLC0415
        brokers,
        levels,
        request_log,
        rights,
        telemetry_records,
        topics,
    )
    from quotaflow.pipelines.doctor.cluster_probe import open_probe  # noqa: PLC0415
    from quotaflow.pipelines.kafka import admin  # noqa: PLC0415

    servers = conf.kafka.properties.get("bootstrap.servers", "no bootstrap.servers")
    try:
        cluster = admin.describe(conf.kafka.login, topics.configured_topics(conf))
    except QuotaflowError as error:
        yield from_error("cluster", error)
        return
    yield _identity(conf, cluster.cluster_id, servers)
    with open_probe(conf) as probe:
        yield from brokers.findings(probe)
        yield from rights.findings(probe)
        yield from topics.findings(probe, cluster)
        newest = request_log.newest(probe, cluster)
        yield from request_log.findings(newest, conf, request_log.snapshot_brokers(probe, cluster))
        yield from telemetry_records.findings(probe, cluster)
        is_sampled = request_log.stand_for_several(newest, conf.ingest)
        yield from levels.findings(probe, cluster, brokers_sample=is_sampled)


def _identity(conf: Conf, cluster_id: str, servers: str) -> Finding:
    pinned = conf.kafka.cluster_id
    if pinned and pinned != cluster_id:
        seen = f"{servers} is cluster {cluster_id}, and conf has {pinned}"
        return Finding("cluster", BAD, seen, "correct kafka.cluster_id or bootstrap.servers")
    return Finding("cluster", OK, f"{servers} gives the cluster id {cluster_id}")
