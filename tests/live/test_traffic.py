"""The demo's traffic on a real cluster: what clients report is what brokers hold and log."""

import json
import os
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from quotaflow.demo import traffic, traffic_java
from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.traffic_stage import Stage

from .drive import Run, ends
from .readers import await_so

STANDSTILL_S = 2.5
"""Longer than ConsoleProducer waits for an answer by default."""


def named_in(fetches: list[dict[str, Any]]) -> set[int]:
    """The replicas that leaders named instead of themselves."""
    return {
        partition["preferredReadReplica"]
        for fetch in fetches
        for topic in fetch["response"]["responses"]
        for partition in topic["partitions"]
        if partition.get("preferredReadReplica", -1) >= 0
    }


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
    assert named_in(run.logged("FETCH", client_id)) == {ord(rack[-1]) - ord("a") + 1}


def test_a_consumer_that_tells_no_rack_was_sent_nowhere(run: Run) -> None:
    consumer = run.client("rdk-orders-heidi")
    assert consumer.rack is None
    assert consumer.records_consumed == {"orders": run.report.records_acked("orders")}
    fetches = run.logged("FETCH", consumer.client_id)
    assert {fetch["request"]["rackId"] for fetch in fetches} == {""}
    assert named_in(fetches) == set()


def test_every_producer_of_mallory_got_an_id_of_its_own(run: Run) -> None:
    received = run.client("rdk-clicks-mallory").producer_ids
    assert received == run.report.producer_ids("User:mallory") >= 50


@pytest.mark.parametrize("user", ["alice", "bob", "mallory", "dave", "erin", "frank", "grace"])
def test_ids_that_clients_heard_of_are_ids_that_brokers_gave(run: Run, user: str) -> None:
    assert 0 < run.report.producer_ids(f"User:{user}") <= run.ids_given(f"User:{user}")


@pytest.mark.parametrize(
    "client_id", ["rdk-orders-alice", "rdk-payments-bob", "rdk-orders-carol", "rdk-exports-dave"]
)
def test_pushes_a_client_sent_are_pushes_a_broker_logged(run: Run, client_id: str) -> None:
    pushes = run.logged("PUSH_TELEMETRY", client_id)
    sent = run.client(client_id).pushes
    assert sent is not None
    assert sent >= 3
    # It does not count a push that it sends while it closes.
    assert sent <= sum(not push["request"]["terminating"] for push in pushes) <= sent + 1
    assert {push["response"]["errorCode"] for push in pushes} == {0}


@pytest.mark.parametrize("client_id", ["java-orders-alice", "java-payments-bob", "java-orders-bob"])
def test_java_clients_push_too(run: Run, client_id: str) -> None:
    assert run.logged("PUSH_TELEMETRY", client_id)
    assert run.client(client_id).pushes is None


def test_a_java_producer_waits_for_a_broker_that_stands_still(cluster: LocalCluster) -> None:
    topic, leader, records = "traffic-stands-still", max(cluster.pids), 90
    with cluster.admin() as admin:
        admin.create_topics({topic: {"assignments": {0: [leader]}}}, wait_for_metadata=True)
    client_id = "java-waits-alice"
    steady = partial(traffic_java.steady, records=records, bytes_each=100)
    with ThreadPoolExecutor(1) as pool:
        producer = pool.submit(steady, Stage(cluster, 0, 3.0), "alice", client_id, topic)
        await_so(lambda: ends(cluster, [topic])[topic] > 0)
        os.kill(cluster.pids[leader], signal.SIGSTOP)
        try:
            time.sleep(STANDSTILL_S)
        finally:
            os.kill(cluster.pids[leader], signal.SIGCONT)
        producer.result()
    assert ends(cluster, [topic])[topic] == records
    log = (cluster.folder / "clients" / f"{client_id}.log").read_text()
    assert "retrying" not in log


def test_dave_was_throttled_as_often_as_he_saw(run: Run) -> None:
    throttled = [p for p in run.logged("PRODUCE", "rdk-exports-dave") if p["throttleTimeMs"] > 0]
    assert run.client("rdk-exports-dave").throttled_responses == len(throttled) > 0


def test_brokers_took_good_changes_and_refused_bad_ones(run: Run) -> None:
    codes = {(c.entity_name, c.config, c.value): c.error_code for c in run.report.config_calls}
    assert codes[("mallory", "producer_ids_rate", "5")] == 42
    assert codes[("orders", "producer_ids_rate", "5")] == 40
    assert codes[("dave", "producer_byte_rate", "20000")] == 0
    assert Counter(code == 0 for code in codes.values()) == {True: 7, False: 6}


def test_the_move_ended_and_left_no_throttle(run: Run, cluster: LocalCluster) -> None:
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


@pytest.mark.shows("leaves out its own shipper, by client id and principal")
def test_every_line_but_its_own_and_secret_ones_was_acked_once(run: Run) -> None:
    counts = run.line_counts
    assert counts.read == counts.acked + counts.own + counts.secret
    assert counts.own > 0
    # bob's SCRAM credential, made when the cluster began, did not even reach the file.
    assert counts.secret == 0
    assert not run.logged_of("ALTER_USER_SCRAM_CREDENTIALS")
    assert run.written[REQUEST_LOG_TOPIC] == counts.acked


def test_the_report_is_json(run: Run) -> None:
    again = json.loads(json.dumps(run.report.as_json()))
    assert again["clients"][0]["principal"] == "User:alice"
    assert set(again["topic_ids"]) == set(traffic.TOPICS)
    assert all(len(topic_id) == 22 for topic_id in again["topic_ids"].values())
