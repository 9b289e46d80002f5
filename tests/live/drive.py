"""One run of the demo's traffic on the shared cluster, and what its brokers wrote meanwhile."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from kafka import TopicPartition
from kafka.admin import OffsetSpec

from quotaflow.demo import traffic
from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.request_lines import logged
from quotaflow.demo.shipper import Shipper, ShipperCounts
from quotaflow.demo.traffic_report import ClientReport, TrafficReport
from quotaflow.pipelines.config import IngestSection
from quotaflow.udfs.facts.requests import RequestLog
from quotaflow.udfs.otlp.codecs import Limits

from ..record_batches import record_batch
from . import odd_clients

SCALE = traffic.MIN_SCALE
_LAST_FETCHES_S = 1.0


@dataclass(frozen=True)
class Run:
    report: TrafficReport
    written: Counter[str]
    line_counts: ShipperCounts
    requests: list[dict[str, Any]]

    def client(self, client_id: str) -> ClientReport:
        return next(c for c in self.report.clients if c.client_id == client_id)

    def logged_of(self, api: str) -> list[dict[str, Any]]:
        return [r for r in self.requests if r["requestHeader"]["requestApiKeyName"] == api]

    def logged(self, api: str, client_id: str) -> list[dict[str, Any]]:
        return [
            line
            for line in self.requests
            if line["requestHeader"]["requestApiKeyName"] == api
            and line["requestHeader"]["clientId"] == client_id
            and not line["isForwarded"]
        ]

    def ids_given(self, principal: str) -> int:
        """How many producer ids brokers gave it, those among them whose answers came too late.

        A client that asks a second broker, because the first is slow, can end before one answers.
        """
        return len(
            {
                line["response"]["producerId"]
                for line in self.logged_of("INIT_PRODUCER_ID")
                if line["principal"] == principal and line["response"]["errorCode"] == 0
            }
        )


def drive(cluster: LocalCluster) -> Run:
    """Let the clients work, ship the request log, and count what brokers hold."""
    with cluster.admin() as admin:
        there = [t for t in (*traffic.TOPICS, REQUEST_LOG_TOPIC) if t in admin.list_topics()]
    before = ends(cluster, there)
    properties = cluster.librdkafka_properties("shipper")
    with Shipper(properties, REQUEST_LOG_TOPIC, cluster.request_logs) as shipper:
        report = traffic.run(cluster, seed=7, scale=SCALE)
        odd_clients.work(cluster)
        # The last requests of followers are logged when answered, replica.fetch.wait.max.ms later.
        time.sleep(_LAST_FETCHES_S)
        shipper.drain()
    line_counts = shipper.counts  # after its end: it ships on until then
    written = ends(cluster, [*traffic.TOPICS, REQUEST_LOG_TOPIC])
    written.subtract(before)
    requests = [r for r in logged(cluster) if report.began_ms <= r["ts"]]
    return Run(report, written, line_counts, [r["r"] for r in requests])


def ends(cluster: LocalCluster, topics: list[str]) -> Counter[str]:
    """Sum of the end offsets of each topic's partitions."""
    with cluster.admin() as admin:
        partitions = [
            TopicPartition(topic["name"], p["partition_index"])
            for topic in admin.describe_topics(topics)
            for p in topic["partitions"]
        ]
        offsets = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    total: Counter[str] = Counter()
    for partition, at in offsets.items():
        total[partition.topic] += at.offset
    return total


def parsed(cluster: LocalCluster, lines: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows of requests for these lines of logs, as the ingest job makes them."""
    now = datetime.now(UTC)
    log = RequestLog(cluster.cluster_id, IngestSection().line_options, Limits(), None)
    values = [json.dumps(line).encode() for line in lines]
    return log.open().read(record_batch(values, time=now), now).tables["requests"]
