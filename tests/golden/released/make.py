"""Writes what a release leaves behind: its schema, and a small warehouse with checkpoints.

`python tests/golden/released/make.py`, run by whoever releases, writes VERSION.json and
VERSION.tar.gz beside this file. Tests hold every later program against them: what a release wrote
must be taken over, or refused by name.
"""

import json
import tarfile
import tempfile
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from quotaflow.pipelines import config
from quotaflow.pipelines.jobs import runner
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.migrations import SCHEMA_VERSION
from quotaflow.schemas.table import Table, sql_type
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.telemetry import TELEMETRY_PUSHES

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
# Those that read tables: the others need a cluster to start.
JOBS = ["client_metrics", "fetches", "request_results", "fetch_results", "metric_alerts"]
PAYLOAD = Path(__file__).parents[1] / "otlp" / "rdk-idem-alice.data.bin"


def schema() -> dict[str, Any]:
    """Every table as this program declares it."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tables": {
            table.name: {
                "columns": {column.name: sql_type(column.type) for column in table.columns},
                "partitioning": list(table.partitioning),
                "clustering": list(table.clustering),
            }
            for table in TABLES.values()
        },
    }


def request(number: int, **others: Any) -> dict[str, Any]:
    """One line of the request log, a minute after the one before."""
    time = NOON + timedelta(minutes=number)
    partition = {"topic": "orders", "partition": 0, "bytes": 1_000, "error_code": 0}
    return {
        "cluster_id": "released",
        "event_time": time,
        "record_time": time,
        "broker_id": 1,
        "api": "PRODUCE",
        "principal": "User:alice",
        "client_id": "alice",
        "error_code": 0,
        "partitions": [partition | {"in_request": True, "in_response": True}],
        "source_topic": "broker_request_logs",
        "source_partition": 0,
        "source_offset": number,
    } | others


def fetch(number: int) -> dict[str, Any]:
    """A FETCH that begins a session."""
    session = {"session_id": 0, "session_epoch": 0, "response_session_id": 7 + number}
    return request(number, api="FETCH", principal="User:bob", client_id="bob", **session)


def push(number: int) -> dict[str, Any]:
    """A push of a real client's payload."""
    return {
        "cluster_id": "released",
        "event_time": NOON + timedelta(minutes=number),
        "record_time": NOON + timedelta(minutes=number),
        "client_instance_id": f"instance-{number}",
        "accepted": True,
        "compression": "none",
        "payload": PAYLOAD.read_bytes(),
        "payload_sha256": f"{number:064d}",
        "route": "request_log",
        "source_topic": "broker_request_logs",
        "source_partition": 1,
        "source_offset": number,
    }


def arrive(warehouse: Warehouse, table: Table, number: int, *rows: dict[str, Any]) -> None:
    """Append facts as an ingest query does."""
    spark = session.get(config.SparkSection(conf=session.SHORT_LIVED))
    content = pa.Table.from_pylist(list(rows), schema=table.arrow)
    batch = Batch(warehouse, "ingest_request_log", "released", number)
    batch.append(spark.createDataFrame(content), table)


def fill(conf: config.Conf, first: int) -> None:
    """Some facts from a number on, and every job on them once."""
    warehouse = Warehouse(conf.warehouse)
    spark = session.get(config.SparkSection(conf=session.SHORT_LIVED))
    warehouse.ensure(lambda: spark, TABLES.values())
    produced = request(first, producer_id=first + 1)
    arrive(warehouse, REQUESTS, first, produced, fetch(first + 1))
    arrive(warehouse, TELEMETRY_PUSHES, first, push(first))
    runner.run(conf, JOBS, None, lambda _: None)


def main() -> None:
    """Write both files of this release."""
    here, name = Path(__file__).parent, version("quotaflow")
    if (here / f"{name}.json").exists():
        raise SystemExit(f"{name} was released already: raise the version in pyproject.toml")
    (here / f"{name}.json").write_text(json.dumps(schema(), indent=1) + "\n", encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        fill(config.load(overrides=[f"warehouse.path={folder}/warehouse"]), 0)
        with tarfile.open(here / f"{name}.tar.gz", "w:gz") as archive:
            archive.add(f"{folder}/warehouse", "warehouse")


if __name__ == "__main__":
    main()
