"""The request log by the appender for log4j2: to the topic, without file and shipper."""

from importlib.resources import files
from pathlib import Path

import pytest
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion

from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.line_filter import CLIENT_ID

from ..broker_jar import broker_jar
from .jmx import jmx
from .request_log_topic import configured, produce_each, rows

BEAN = "quotaflow:type=RequestLog"
OF_ALICE, OF_MALLORY = 200, 20


def counts(cluster: LocalCluster) -> dict[str, int]:
    beans = jmx(cluster, 1, BEAN)
    return {name.rsplit(":", 1)[-1]: int(value) for name, value in beans.items()}


def with_appender(cluster: LocalCluster, folder: Path) -> None:
    """Start the broker again, with its request log to the topic of its own cluster."""
    login = cluster.client_properties("shipper")
    settings = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "producer.security.protocol": login["security.protocol"],
        "producer.sasl.mechanism": login["sasl.mechanism"],
        "apis.exclude": "METADATA",
        "sampling.PRODUCE": "0.5",
        "producer.max.block.ms": "120000",
    }
    path = configured(folder, settings, login["sasl.jaas.config"])
    layout = (files("quotaflow.broker") / "log4j2-topic.yaml").read_text(encoding="utf-8")
    default = "/etc/kafka/quotaflow/request-log.properties"
    assert default in layout
    (cluster.folder / "log4j2.yaml").write_text(layout.replace(f":-{default}", f":-{path}"))
    cluster.stop_broker(1)
    cluster.request_logs[1].unlink()
    cluster.start_broker(1)


@pytest.mark.faults
def test_lines_go_to_the_topic_and_none_is_about_a_line(tmp_path: Path) -> None:
    with LocalCluster(tmp_path / "kafka", nodes=1, class_path=[broker_jar()]) as cluster:
        with_appender(cluster, tmp_path)
        cluster.create_topics(["orders"], partitions=1)
        produce_each(cluster.librdkafka_properties("alice"), "orders", OF_ALICE)
        # Anybody may call itself that: its requests do not vanish.
        mallory = cluster.librdkafka_properties("mallory")
        produce_each(mallory, "orders", OF_MALLORY, **{"client.id": CLIENT_ID})
        with cluster.admin() as admin:
            user = UserScramCredentialUpsertion("eve", ScramMechanism.SCRAM_SHA_256, "secret")
            admin.alter_user_scram_credentials([user])
        lines = rows(cluster.librdkafka_properties("admin"), REQUEST_LOG_TOPIC)
        seen = counts(cluster)
        logged = cluster.request_logs[1].with_name("server.log").read_text()
        assert not cluster.request_logs[1].exists()
    assert {(line["reason"], line["form"]) for line in lines} == {(None, "envelope")}
    assert {line["left_out"] for line in lines} <= {None, "raft", "forwarded_copy"}
    assert {line["broker_id"] for line in lines} == {1}
    produced = [line for line in lines if line["api"] == "PRODUCE"]
    assert {(line["principal"], line["weight"]) for line in produced} == {
        ("User:alice", 2.0),
        ("User:mallory", 2.0),
    }
    assert {r["client_id"] for r in produced if r["principal"] == "User:mallory"} == {CLIENT_ID}
    assert len(produced) + seen["SampledOut"] == OF_ALICE + OF_MALLORY
    assert 60 < len(produced) < 160
    assert not {"METADATA", "ALTER_USER_SCRAM_CREDENTIALS"} & {line["api"] for line in lines}
    # One line for each batch of lines, and no lines about these.
    assert 0 < seen["Own"] < len(lines)
    assert seen["Filtered"] > 0
    assert seen["Secret"] > 0
    assert seen["Dropped"] == seen["Failed"] == seen["Unreadable"] == 0
    assert seen["Received"] - seen["Sent"] <= 100
    password = cluster.client_properties("shipper")["sasl.jaas.config"].split('"')[-2]
    assert password not in logged
