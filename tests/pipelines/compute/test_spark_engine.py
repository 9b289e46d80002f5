"""Tasks over files and tasks over what Spark scans give the same rows."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from quotaflow.pipelines.compute.computation import Computation
from quotaflow.pipelines.compute.engine import Engine, spark_engine
from quotaflow.pipelines.compute.result import LookupTable, Result
from quotaflow.pipelines.config import WarehouseSection
from quotaflow.pipelines.results.declared import result_of
from quotaflow.pipelines.warehouse import folder_tables
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import BROKERS, REQUESTS, TOPICS
from quotaflow.udfs.engine.rule import Rule

from ...delta_tables import NOON
from .local_tasks import LocalTasks

pytestmark = pytest.mark.spark

HOUR = (TimeRange(NOON, NOON + timedelta(hours=1)),)
MEMORY_MB = 256
NAMED = """
SELECT cluster_id, CAST(r.event_time AS DATE) AS event_date, r.event_time, broker_id, principal,
    client_id, 'produced' AS direction, t.topic, t.topic_id, NULL AS client_rack, 1 AS bytes,
    false AS is_rack_inferred, NULL AS rack_source, NULL AS broker_rack, NULL AS cross_rack_bytes
FROM requests r JOIN topics t USING (cluster_id)
"""

STORED = (REQUESTS, TOPICS, TABLES["topic_names"], BROKERS, TABLES["traffic"])


def request(second: int) -> dict[str, Any]:
    time = NOON + timedelta(seconds=second)
    return {
        "cluster_id": "c",
        "broker_id": second % 3,
        "principal": f"User:{second % 5}",
        "api": "PRODUCE",
        "event_time": time,
        "record_time": time,
        "partitions": [{"topic": "orders", "bytes": second, "error_code": 0}],
    }


TOPIC_ROWS = [{"cluster_id": "c", "event_time": NOON, "topic": "orders", "topic_id": "id"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with requests of an hour, in files of some minutes each."""
    root = tmp_path_factory.mktemp("warehouse")
    for table in STORED:
        folder_tables.create(Place.local(root), table)
    for start in range(0, 3_600, 600):
        rows = [request(second) for second in range(start, start + 700, 7)]
        content = pa.Table.from_pylist(rows, schema=REQUESTS.arrow)
        write_deltalake(root / REQUESTS.name, content, mode="append")
    topics = pa.Table.from_pylist(TOPIC_ROWS, schema=TOPICS.arrow)
    write_deltalake(root / TOPICS.name, topics, mode="append")
    return root


@pytest.fixture(scope="module")
def catalog(spark: SparkSession, folder: Path) -> Iterator[Warehouse]:
    """The same tables in a schema of Spark's catalog."""
    spark.sql(f"CREATE SCHEMA engine LOCATION '{folder}/_schema'")
    for table in STORED:
        path = folder / table.name
        spark.sql(f"CREATE TABLE engine.{table.name} USING delta LOCATION '{path}'")
    yield Warehouse(
        WarehouseSection(catalog_schema="spark_catalog.engine", checkpoints="/Volumes/x")
    )
    spark.sql("DROP SCHEMA engine CASCADE")


def named() -> Result:
    """A rule with a lookup table."""
    rule = Rule("named", NAMED, TABLES["traffic"].arrow)
    return Result(TABLES["traffic"], REQUESTS, 60, 0, rule=rule, lookups=(LookupTable(TOPICS),))


def rows(engine: Engine, computations: list[Computation]) -> dict[str, list[str]]:
    got: dict[str, list[str]] = {}
    for computed in engine.run(computations):
        assert computed.error is None
        name = computed.result.rule.name
        got.setdefault(name, []).extend(map(str, computed.rows.to_pylist()))
    return {name: sorted(texts) for name, texts in got.items()}


@pytest.mark.parametrize("rows_per_task", [pytest.param(100, marks=pytest.mark.faults), 10_000])
def test_files_and_scans_give_the_rows_of_this_process(
    spark: SparkSession, folder: Path, catalog: Warehouse, rows_per_task: int
) -> None:
    computations = [Computation(each, HOUR, 3_600) for each in (result_of("traffic"), named())]
    in_folder = Warehouse(WarehouseSection(path=str(folder)))
    expected = rows(Engine(lambda: LocalTasks(folder)), computations)
    assert len(expected["traffic"]) > 500
    for warehouse in (in_folder, catalog):
        engine = spark_engine(spark, warehouse, MEMORY_MB)
        engine = replace(engine, rows_per_task=rows_per_task, tasks_at_once=3)
        assert rows(engine, computations) == expected


def test_a_file_that_vanishes_while_it_is_read_is_named_again(folder: Path) -> None:
    tries = []

    class Vanishing(LocalTasks):
        def run(self, plans: Any) -> pa.Table:
            tries.append(plans)
            if len(tries) == 1:
                for file in self.relations.files("requests"):
                    Path(file.path).rename(f"{file.path}.away")
            output = super().run(plans)
            for file in self.relations.files("requests"):
                away = Path(f"{file.path}.away")
                if away.exists():
                    away.rename(file.path)
            return output

    engine = Engine(lambda: Vanishing(folder))
    traffic = result_of("traffic")
    got = rows(engine, [Computation(traffic, HOUR, 3_600)])
    assert got == rows(Engine(lambda: LocalTasks(folder)), [Computation(traffic, HOUR)])
    assert len(tries) == 2
