"""The same tables behind Spark Connect and on a standalone cluster as in a session of our own."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from quotaflow.pipelines import config, session
from quotaflow.pipelines.jobs import GROUPS, JOBS
from quotaflow.pipelines.reader import Reader
from quotaflow.pipelines.warehouse import Warehouse

from . import elsewhere, recorded

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.timeout(1_800)]

# When it was written, and by which start of a query, may differ.
COLUMNS = {"pipeline_progress": "* EXCEPT (event_time, query_id, batch_id)"}
CHOSEN = ("facts", "results")
FILLED = sorted({table.name for of in CHOSEN for job in GROUPS[of] for table in JOBS[job].fills})


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
    warehouse = {"path": str(folder / "warehouse")}
    file = folder / "conf.yaml"
    values = {"warehouse": warehouse, "spark": spark, "ingest": {"receiver_topic": None}}
    file.write_text(yaml.safe_dump(values))
    done = subprocess.run(
        [sys.executable, recorded.__file__, str(records), str(file), *CHOSEN],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    reader = Reader(Warehouse(config.Warehouse.model_validate(warehouse)))
    return {
        name: Counter(map(repr, reader.rows(f"SELECT {COLUMNS.get(name, '*')} FROM {name}")))
        for name in FILLED
    }


def test_spark_connect_fills_the_same_tables(
    records: Path, expected: dict[str, Counter[str]], tmp_path: Path
) -> None:
    with elsewhere.connect_server(tmp_path) as address:
        assert filled(records, tmp_path, {}, SPARK_REMOTE=address) == expected


def test_workers_without_quotaflow_fill_the_same_tables(
    records: Path, expected: dict[str, Counter[str]], tmp_path: Path
) -> None:
    python = elsewhere.without_quotaflow(tmp_path / "python")
    settings = session.SHORT_LIVED | {
        "spark.pyspark.python": str(python),
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
    }
    with elsewhere.standalone_cluster(tmp_path, workers=2) as master:
        found = filled(records, tmp_path, {"master": master, "conf": settings})
    assert found == expected


def test_what_is_compared_is_there(expected: dict[str, Counter[str]]) -> None:
    assert {"requests", "client_metrics", "fetches", "quota_usage"} <= {
        name for name, rows in expected.items() if rows.total() > 9
    }
