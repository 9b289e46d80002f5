"""init queries a real cluster; its scripts, run by Kafka's own tools, make topics and rights."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines import config
from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.kafka.admin import describe
from quotaflow.schemas import acls

from ..command_line import in_options
from .guarded import acls_of, operation_of

LOGS, PUSHES = "init-request-logs", "client_telemetry"
TOOLS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
}


@pytest.fixture
def folder(cluster: LocalCluster, login: list[str], tmp_path: Path) -> Path:
    """What init writes for the shared cluster, with a log topic of its own."""
    properties = [pair for pair in login if pair.startswith("kafka.properties.")]
    given = in_options(*properties, f"ingest.request_log_topic={LOGS}")
    out = tmp_path / "setup"
    words = ["--bootstrap-server", cluster.bootstrap_servers, "--out", str(out)]
    assert execute(["init", *words, *given]) == 0
    return out


def test_the_cluster_s_own_answers_stand_in_the_files(cluster: LocalCluster, folder: Path) -> None:
    made = config.load(folder / "conf.yaml")
    assert made.kafka.cluster_id == cluster.cluster_id
    assert "az-a" in (folder / "conf.yaml").read_text()
    topics = (folder / "topics.sh").read_text()
    assert f"--create --topic {LOGS} --partitions 3" in topics
    assert f"--alter --entity-type topics --entity-name {PUSHES}" in topics
    assert describe(made.kafka.properties, []).cluster_id == cluster.cluster_id


@pytest.fixture
def tools(cluster: LocalCluster, tmp_path: Path) -> Iterator[dict[str, str]]:
    """A PATH with Kafka's tools on it, and no trace of what they made afterwards."""
    for name, main_class in TOOLS.items():
        tool = tmp_path / name
        words = shlex.join(cluster.java_command(main_class))
        tool.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        tool.chmod(0o755)
    yield {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with cluster.admin() as admin:
        admin.delete_acls([OURS])
        admin.delete_topics([LOGS])


OURS = acls_of(None)


@pytest.mark.faults
def test_the_scripts_make_topics_and_the_rights_of_each_role(
    cluster: LocalCluster, folder: Path, tools: dict[str, str]
) -> None:
    shutil.copy(cluster.properties_file("admin"), folder / "client.properties")
    script = folder / "acls.sh"
    script.write_text(script.read_text().replace("# kafka-acls.sh", "kafka-acls.sh"))
    for name in ("topics.sh", "acls.sh"):
        output = subprocess.run(
            ["sh", name], cwd=folder, env=tools, capture_output=True, text=True, check=False
        )
        assert output.returncode == 0, output.stdout + output.stderr
    with cluster.admin() as admin:
        assert LOGS in admin.list_topics()
        bindings, _ = admin.describe_acls(OURS)
    granted = {
        (acl.resource_pattern.resource_name, acl.principal, acl.operation.name) for acl in bindings
    }
    topics = {"request_log_topic": LOGS, "receiver_topic": PUSHES}
    for principal, role in (("User:shipper", "shipper"), ("User:quotaflow-operator", "apply")):
        for acl in acls.needed(role, topics):
            assert (acl.name, principal, operation_of(acl).name) in granted
