"""The three-broker cluster: who is in it, who may log in, what its request log says."""

import json
import re
import stat
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka.errors import KafkaError as ClientError

from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC, TELEMETRY_TOPIC
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.credentials import CLIENTS
from quotaflow.pipelines.errors import KafkaError

from ..cases import cases


def leaders(cluster: LocalCluster, topic: str) -> set[int]:
    with cluster.admin() as admin:
        (described,) = admin.describe_topics([topic])
    return {partition["leader_id"] for partition in described["partitions"]}


def test_every_broker_is_a_member_in_a_rack_of_its_own(cluster: LocalCluster) -> None:
    with cluster.admin() as admin:
        seen = admin.describe_cluster()
    assert {b["broker_id"]: b["rack"] for b in seen["brokers"]} == cluster.racks
    assert cluster.racks == {1: "az-a", 2: "az-b", 3: "az-c"}
    assert seen["cluster_id"] == cluster.cluster_id


def test_the_pipelines_topics_are_there_and_take_large_records(cluster: LocalCluster) -> None:
    with cluster.admin() as admin:
        described = admin.describe_topics([REQUEST_LOG_TOPIC, TELEMETRY_TOPIC])
    for topic in described:
        assert len(topic["partitions"]) == 3
        assert all(len(p["replica_nodes"]) == 1 for p in topic["partitions"])


@pytest.mark.parametrize(
    "user",
    [
        *CLIENTS[:2],
        *(pytest.param(user, marks=pytest.mark.faults) for user in CLIENTS[2:]),
    ],
)
def test_a_user_logs_in_with_the_right_password_alone(cluster: LocalCluster, user: str) -> None:
    properties = cluster.librdkafka_properties(user)
    assert set(AdminClient(properties).list_topics(timeout=10).brokers) == {1, 2, 3}
    wrong = {**properties, "sasl.password": "wrong", "log_level": 0}
    with pytest.raises(KafkaException):
        AdminClient(wrong).list_topics(timeout=2)


def test_the_brokers_own_user_cannot_log_in_as_a_client(cluster: LocalCluster) -> None:
    with pytest.raises(ClientError):
        cluster.admin("broker", bootstrap_timeout_ms=3000)


def test_kafkas_tools_run_with_a_users_properties_file(cluster: LocalCluster) -> None:
    topic = f"tool-{uuid4().hex[:8]}"
    cluster.create_topics([topic], partitions=3)
    output = cluster.run_tool(
        "org.apache.kafka.tools.TopicCommand",
        *("--bootstrap-server", cluster.bootstrap_servers, "--describe", "--topic", topic),
        *("--command-config", str(cluster.properties_file("admin"))),
    )
    assert "PartitionCount: 3\tReplicationFactor: 3" in output


def test_a_tool_that_fails_says_its_first_cause(cluster: LocalCluster, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    step = {"topic": "no_such", "partition": 0, "replicas": [1]}
    plan.write_text(json.dumps({"version": 1, "partitions": [step]}), encoding="utf-8")
    with pytest.raises(KafkaError) as raised:
        cluster.run_tool(
            "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
            *("--bootstrap-server", cluster.bootstrap_servers),
            *("--command-config", str(cluster.properties_file("admin"))),
            *("--reassignment-json-file", str(plan), "--execute"),
        )
    assert str(raised.value) == (
        "ReassignPartitionsCommand failed (1): "
        "UnknownTopicOrPartitionException: Topic no_such not found."
    )


@pytest.mark.usefixtures("run")
def test_request_log_lines_are_json_in_an_envelope_of_time_and_broker(
    cluster: LocalCluster,
) -> None:
    for broker_id, path in cluster.request_logs.items():
        with path.open() as log:
            lines = [json.loads(line) for line in islice(log, 50)]
        assert len(lines) == 50
        for line in lines:
            assert line["broker"] == broker_id
            assert abs(line["ts"] - path.stat().st_mtime_ns / 1e6) < 3_600_000
            assert {"requestHeader", "request", "response", "principal"} <= line["r"].keys()


def test_no_password_is_in_a_log_or_in_the_process_list(cluster: LocalCluster) -> None:
    secrets = {
        match
        for path in cluster.folder.rglob("*.properties")
        for match in re.findall(r'(?:password|user_\w+)="([^"]+)"', path.read_text())
    }
    assert len(secrets) == len(CLIENTS) + 1
    logs = [path for path in cluster.folder.rglob("logs/*") if path.is_file()]
    texts = [path.read_text(errors="replace") for path in logs]
    texts += [" ".join(psutil.Process(pid).cmdline()) for pid in cluster.pids.values()]
    assert [secret for secret in secrets for text in texts if secret in text] == []


def test_what_holds_passwords_is_its_owners_alone(cluster: LocalCluster) -> None:
    assert stat.S_IMODE(cluster.folder.stat().st_mode) == 0o700
    files = [path for path in cluster.folder.rglob("*.properties") if _holds_a_login(path)]
    assert len(files) >= len(CLIENTS) + 3
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def _holds_a_login(path: Path) -> bool:
    return "jaas" in path.read_text(encoding="utf-8")


def test_a_cluster_works_in_any_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Duser.language=tr")
    with LocalCluster(tmp_path / "cluster", nodes=1) as cluster:
        assert list(cluster.pids) == [1]
        # librdkafka knows other spellings than its own in some locales alone.
        values = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
        assert cluster.librdkafka_properties("alice")["security.protocol"] in values


@pytest.mark.faults
@cases("end", ("stopped cleanly", LocalCluster.stop_broker), ("killed", LocalCluster.kill_broker))
def test_a_broker_that_went_comes_back_with_its_leaders(
    cluster: LocalCluster, end: Callable[[LocalCluster, int], None]
) -> None:
    topic = f"leaders-{uuid4().hex[:8]}"
    cluster.create_topics([topic], partitions=3)
    assert leaders(cluster, topic) == {1, 2, 3}
    end(cluster, 2)
    assert set(cluster.pids) == {1, 3}
    cluster.start_broker(2)
    assert set(cluster.pids) == {1, 2, 3}
    assert leaders(cluster, topic) == {1, 2, 3}
