"""A broker that dies under a running pipeline and comes back: no line lost, none twice."""

import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import QuotaflowError
from quotaflow.pipelines.spark import session

from ..own_process import quotaflow
from . import quiet_clients
from .readers import await_so
from .tables_read import query

TOPIC = "broker-away"
TIMEOUT_S = 240


def send(cluster: LocalCluster, numbers: range) -> None:
    quiet_clients.send(cluster, TOPIC, map(quiet_clients.metadata_line, numbers))


def leader(cluster: LocalCluster) -> int:
    with cluster.admin() as admin:
        (topic,) = admin.describe_topics([TOPIC])
    return int(topic["partitions"][0]["leader_id"])


def seen(folder: Path) -> list[int]:
    try:
        rows = query(folder, "SELECT correlation_id FROM requests")
    except QuotaflowError:
        return []
    return sorted(row["correlation_id"] for row in rows)


def await_lines(folder: Path, count: int) -> None:
    await_so(lambda: len(seen(folder)) >= count, TIMEOUT_S)


@pytest.mark.faults
@pytest.mark.timeout(1_800)
def test_a_broker_dies_and_comes_back(cluster: LocalCluster, conf: Conf, tmp_path: Path) -> None:
    cluster.create_topics([TOPIC], partitions=1, replication_factor=1)
    file, folder = tmp_path / "conf.yaml", conf.warehouse.folder
    settings = {
        "kafka": {"properties": dict(conf.kafka.properties)},
        "warehouse": {"path": str(folder)},
        "ingest": {"request_log_topic": TOPIC},
        "spark": {"conf": session.SHORT_LIVED},
    }
    file.write_text(yaml.safe_dump(settings))
    command = quotaflow("run", "ingest_request_log", "--every", "2s", "--conf", str(file))
    with subprocess.Popen(command) as process:
        try:
            send(cluster, range(20))
            await_lines(folder, 20)
            down = leader(cluster)
            cluster.kill_broker(down)
            time.sleep(15)
            cluster.start_broker(down)
            send(cluster, range(20, 50))
            await_lines(folder, 50)
            process.send_signal(signal.SIGINT)
            assert process.wait(TIMEOUT_S) == 130
        finally:
            process.kill()
    assert seen(folder) == list(range(50))
