"""The same tables behind Spark Connect and on a standalone cluster as in a session of our own."""

import os
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from quotaflow.pipelines import config
from quotaflow.pipelines.jobs.registry import GROUPS, JOBS
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...rows import Row
from ...schemas.views.view_tables import make_table
from . import recorded, remote_spark

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.timeout(1_800)]

# When it was written, and by which start of a query, may differ.
COLUMNS = {"pipeline_progress": "* EXCEPT (event_time, query_id, batch_id)"}
CHOSEN = ("facts", "results")
FILLED = sorted(
    {table.name for group in CHOSEN for job in GROUPS[group] for table in JOBS[job].fills}
)
EMPTY = {"fetch_faults", "reassignment_changes", "replication_rates"}
EMPTY |= {"group_commits", "remote_reads"}
"""Tables without rows in the recorded lines."""
ALERT = {"name": "slow", "metric": "org.apache.kafka.*.request.latency.max", "above": 0}
CONF = {
    "ingest": {"receiver_topic": None},
    # Records are hours later than the events of their lines.
    "results": {"max_lateness_s": 86_400},
    "alerts": {"rules": [ALERT | {"for_s": 2, "stale_s": 600}]},
}
SEEN = {
    "cluster_id": "c1",
    "event_time": recorded.RECORD_TIME - timedelta(days=1),
    "is_removed": False,
}
ORDERS = {"topic_id": "6VfFl0gvSJWn0M2FhjxChg", "topic": "orders"}
OF_BROKERS = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "leader.replication.throttled.rate": "1000",
}
SNAPSHOTS: dict[str, list[Row]] = {
    "brokers": [SEEN | {"broker_id": n, "rack": f"az-{n}"} for n in (1, 2, 3, 7)],
    "topics": [SEEN | ORDERS],
    "replicas": [
        SEEN | ORDERS | {"partition": p, "broker_id": n, "is_leader": n == 7, "is_in_sync": True}
        for p in range(3)
        for n in (1, 2, 3, 7)
    ],
    "configs": [
        SEEN | {"entity_type": "broker", "entity_name": str(n), "config_key": k, "config_value": v}
        for n in (1, 2, 3, 7)
        for k, v in OF_BROKERS.items()
    ],
    "client_quotas": [
        SEEN
        | {"user": "alice", "config_key": "producer_byte_rate", "quota": 20_000.0}
        | dict.fromkeys(("is_default_user", "is_default_client_id", "is_default_ip"), False)
    ],
    "active_producers": [
        SEEN
        | {"event_time": at, "broker_id": 7, "topic": "orders", "partition": 0, "producer_id": n}
        for at, ids in (
            (SEEN["event_time"], [0]),
            (recorded.RECORD_TIME, [1_000, 2_000, 6_262]),
        )
        for n in ids
    ],
}
"""What a snapshot would have seen of the cluster whose lines were recorded."""


@pytest.fixture(scope="module")
def records(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Delta table of every line that was recorded."""
    folder = tmp_path_factory.mktemp("recorded") / "records"
    files = sorted((golden / "lines").glob("*.jsonl"))
    recorded.record([line for file in files for line in file.read_bytes().splitlines()], folder)
    return folder


@pytest.fixture(scope="module")
def expected(records: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Counter[str]]:
    """What a session of our own makes of them."""
    return filled(records, tmp_path_factory.mktemp("own"), {"conf": session.SHORT_LIVED})


def filled(
    records: Path, folder: Path, spark: dict[str, Any], **environment: str
) -> dict[str, Counter[str]]:
    """The tables that all jobs fill in a new warehouse, as multisets of rows."""
    place = {"path": str(folder / "warehouse")}
    warehouse = Warehouse(config.WarehouseSection.model_validate(place))
    for name, rows in SNAPSHOTS.items():
        make_table(warehouse, TABLES[name], rows)
    file = folder / "conf.yaml"
    file.write_text(yaml.safe_dump(CONF | {"warehouse": place, "spark": spark}))
    done = subprocess.run(
        [sys.executable, recorded.__file__, str(records), str(file), *CHOSEN],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    reader = FolderReader(warehouse)
    return {
        name: Counter(map(repr, reader.rows(f"SELECT {COLUMNS.get(name, '*')} FROM {name}")))
        for name in FILLED
    }


def test_spark_connect_fills_the_same_tables(
    records: Path, expected: dict[str, Counter[str]], tmp_path: Path
) -> None:
    with remote_spark.connect_server(tmp_path, {}) as environment:
        assert filled(records, tmp_path, {}, **environment) == expected


CLIENT = """
import sys
from quotaflow.pipelines import config
from quotaflow.pipelines.spark import session

session.get(config.SparkSection()).range(1).collect()
print("connected", flush=True)
sys.stdin.read()
"""


def test_a_client_ends_at_once_when_its_server_is_gone(tmp_path: Path) -> None:
    with remote_spark.connect_server(tmp_path, {}) as environment:
        client = subprocess.Popen(
            [sys.executable, "-c", CLIENT],
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert client.stdout is not None
        assert client.stdout.readline() == "connected\n"
    # pyspark would ask the server for ten minutes.
    client.communicate(timeout=300)
    assert client.returncode == 0


def test_workers_without_quotaflow_fill_the_same_tables(
    records: Path, expected: dict[str, Counter[str]], tmp_path: Path
) -> None:
    python = remote_spark.without_quotaflow(tmp_path / "python")
    settings = session.SHORT_LIVED | {
        "spark.pyspark.python": str(python),
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
    }
    with remote_spark.standalone_cluster(tmp_path, workers=2) as master:
        tables = filled(records, tmp_path, {"master": master, "conf": settings})
    assert tables == expected


def test_what_is_compared_is_there(expected: dict[str, Counter[str]]) -> None:
    assert {name for name, rows in expected.items() if not rows} == EMPTY
