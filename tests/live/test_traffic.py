"""The demo's traffic on a real cluster: what clients report is what brokers hold and log."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec

from quotaflow.demo import traffic
from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC
from quotaflow.demo.cluster import Cluster
from quotaflow.demo.rotated_log import RotatedLog
from quotaflow.demo.shipper import MAX_LINE_BYTES, Shipper, ShipperCounts
from quotaflow.demo.traffic_report import ClientReport, TrafficReport

pytestmark = pytest.mark.live

SCALE = traffic.MIN_SCALE


@dataclass(frozen=True)
class Run:
    report: TrafficReport
    written: Counter[str]
    shipped: ShipperCounts
    requests: list[dict[str, Any]]

    def client(self, client_id: str) -> ClientReport:
        return next(c for c in self.report.clients if c.client_id == client_id)

    def logged(self, api: str, client_id: str) -> list[dict[str, Any]]:
        return [
            line
            for line in self.requests
            if line["requestHeader"]["requestApiKeyName"] == api
            and line["requestHeader"]["clientId"] == client_id
            and not line["isForwarded"]
        ]


@pytest.fixture(scope="module")
def run(cluster: Cluster) -> Run:
    with cluster.admin() as admin:
        there = [t for t in (*traffic.TOPICS, REQUEST_LOG_TOPIC) if t in admin.list_topics()]
    before = ends(cluster, there)
    properties = cluster.librdkafka_properties("shipper")
    with Shipper(properties, REQUEST_LOG_TOPIC, cluster.request_logs) as shipper:
        report = traffic.run(cluster, seed=7, scale=SCALE)
        shipped = shipper.drain()
    written = ends(cluster, [*traffic.TOPICS, REQUEST_LOG_TOPIC])
    written.subtract(before)
    requests = [r for r in logged(cluster) if report.began_ms <= r["ts"]]
    return Run(report, written, shipped, [r["r"] for r in requests])


def ends(cluster: Cluster, topics: list[str]) -> Counter[str]:
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


def logged(cluster: Cluster) -> Iterator[dict[str, Any]]:
    for path in cluster.request_logs.values():
        log = RotatedLog(path, MAX_LINE_BYTES)
        for line in log.lines():
            assert line is not None
            yield json.loads(line)
        log.close()


@pytest.mark.parametrize("topic", ["orders", "clicks", "exports", "bulk"])
def test_a_topic_grew_by_what_clients_saw_acked(run: Run, topic: str) -> None:
    assert run.written[topic] == run.report.records_acked(topic) > 0


def test_a_transactional_topic_holds_its_records_and_markers(run: Run) -> None:
    ended = run.client("rdk-payments-bob")
    assert ended.transactions_aborted is not None
    assert ended.transactions_committed is not None
    assert ended.transactions_committed > ended.transactions_aborted > 0
    assert run.written["payments"] > run.report.records_acked("payments") > 0


@pytest.mark.parametrize(
    ("client_id", "rack"), [("rdk-orders-carol", "az-c"), ("java-orders-bob", "az-b")]
)
def test_a_consumer_read_every_order_from_its_rack(run: Run, client_id: str, rack: str) -> None:
    consumer = run.client(client_id)
    assert consumer.rack == rack
    assert consumer.records_consumed == {"orders": run.report.records_acked("orders")}
    redirects = {
        partition["preferredReadReplica"]
        for fetch in run.logged("FETCH", client_id)
        for topic in fetch["response"]["responses"]
        for partition in topic["partitions"]
        if partition.get("preferredReadReplica", -1) >= 0
    }
    assert redirects == {ord(rack[-1]) - ord("a") + 1}


def test_every_producer_of_mallory_got_an_id_of_its_own(run: Run) -> None:
    given = {
        line["response"]["producerId"]
        for line in run.logged("INIT_PRODUCER_ID", "rdk-clicks-mallory")
        if line["response"]["errorCode"] == 0
    }
    assert run.client("rdk-clicks-mallory").producer_ids == len(given) == 50
    assert run.report.producer_ids("User:mallory") == 50


@pytest.mark.parametrize(
    "client_id", ["rdk-orders-alice", "rdk-payments-bob", "rdk-orders-carol", "rdk-exports-dave"]
)
def test_pushes_a_client_sent_are_pushes_a_broker_logged(run: Run, client_id: str) -> None:
    pushes = run.logged("PUSH_TELEMETRY", client_id)
    sent = run.client(client_id).pushes
    assert sent == sum(not push["request"]["terminating"] for push in pushes)
    assert sent >= 3
    assert {push["response"]["errorCode"] for push in pushes} == {0}


@pytest.mark.parametrize("client_id", ["java-orders-alice", "java-payments-bob", "java-orders-bob"])
def test_java_clients_push_too(run: Run, client_id: str) -> None:
    assert run.logged("PUSH_TELEMETRY", client_id)
    assert run.client(client_id).pushes is None


def test_dave_was_throttled_as_often_as_he_saw(run: Run) -> None:
    throttled = [p for p in run.logged("PRODUCE", "rdk-exports-dave") if p["throttleTimeMs"] > 0]
    assert run.client("rdk-exports-dave").throttled_responses == len(throttled) > 0


def test_brokers_took_good_changes_and_refused_bad_ones(run: Run) -> None:
    codes = {(c.entity_name, c.config, c.value): c.error_code for c in run.report.config_calls}
    assert codes[("mallory", "producer_ids_rate", "5")] == 42
    assert codes[("orders", "producer_ids_rate", "5")] == 40
    assert codes[("dave", "producer_byte_rate", "20000")] == 0
    assert Counter(code == 0 for code in codes.values()) == {True: 7, False: 6}


def test_the_move_ended_and_left_no_throttle(run: Run, cluster: Cluster) -> None:
    move = run.report.move
    assert move is not None
    assert move.is_finished
    resources = [
        ConfigResource(ConfigResourceType.TOPIC, "bulk"),
        *(ConfigResource(ConfigResourceType.BROKER, str(id_)) for id_ in cluster.racks),
    ]
    with cluster.admin() as admin:
        described = admin.describe_configs(resources)
    assert "throttled" not in json.dumps(described, default=str)


def test_every_line_but_its_own_and_secret_ones_was_acked_once(run: Run) -> None:
    counts = run.shipped
    assert counts.read == counts.acked + counts.own + counts.secret
    assert counts.own > 0
    assert counts.secret >= 1  # bob's SCRAM credential, written when the cluster began
    assert run.written[REQUEST_LOG_TOPIC] == counts.acked


def test_the_report_is_json(run: Run) -> None:
    again = json.loads(json.dumps(run.report.as_json()))
    assert again["clients"][0]["principal"] == "User:alice"
    assert set(again["topic_ids"]) == set(traffic.TOPICS)
    assert all(len(topic_id) == 22 for topic_id in again["topic_ids"].values())
