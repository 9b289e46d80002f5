"""The brokers whose numbers count in names: those that the last snapshot of a cluster has."""

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import QueryError
from quotaflow.pipelines.warehouse.known_brokers import known_brokers
from quotaflow.pipelines.warehouse.tables import tables_of
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.topology import BROKERS

from ...delta_tables import NOON, Fill

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [
    ("c1", 1, 0, False),
    ("c1", 12, 0, False),
    ("c1", 5, 0, False),
    ("c1", 5, 1, True),
    ("c1", 6, 0, True),
    ("c1", 6, 1, False),
    ("c2", 7, 0, False),
]
"""Cluster, broker, minute, is it removed."""


def brokers(rows: Iterable[tuple[str, int, int, bool]]) -> list[dict[str, Any]]:
    return [
        {
            "cluster_id": cluster,
            "broker_id": broker,
            "event_time": NOON + timedelta(minutes=minute),
            "is_removed": is_removed,
        }
        for cluster, broker, minute, is_removed in rows
    ]


def test_the_current_brokers_of_the_cluster_count(warehouse: Warehouse, fill: Fill) -> None:
    def of_cluster(cluster_id: str) -> tuple[int, ...]:
        return known_brokers(tables_of(warehouse, lambda: pytest.fail("no session")), cluster_id)

    assert of_cluster("c1") == ()
    fill("brokers", brokers(ROWS))
    assert [of_cluster(cluster) for cluster in ("c1", "c2", "c'3")] == [(1, 6, 12), (7,), ()]
    fill("brokers", brokers([("c1", 12, 2, True), ("c1", 8, 2, False)]))
    assert of_cluster("c1") == (1, 6, 8)


def test_a_table_that_cannot_be_read_is_an_error(warehouse: Warehouse, fill: Fill) -> None:
    """Not the same as no brokers: all names of the batch would give none for ever."""
    fill("brokers", brokers(ROWS))
    for file in warehouse.folder("brokers").glob("*.parquet"):
        file.unlink()
    with pytest.raises(QueryError):
        known_brokers(tables_of(warehouse, lambda: pytest.fail("no session")), "c1")


@pytest.mark.spark
def test_a_catalog_has_the_same(spark: "SparkSession", tmp_path: Path) -> None:
    section = config.WarehouseSection(
        catalog_schema="spark_catalog.known", checkpoints=str(tmp_path / "checkpoints")
    )
    warehouse = Warehouse(section)
    spark.sql(f"CREATE DATABASE known LOCATION '{tmp_path / 'known'}'")
    try:
        assert known_brokers(tables_of(warehouse, lambda: spark), "c1") == ()
        warehouse.ensure(lambda: spark, [BROKERS])
        rows = pa.Table.from_pylist(brokers(ROWS), schema=BROKERS.arrow)
        spark.createDataFrame(rows).writeTo(warehouse.target("brokers")).append()
        assert known_brokers(tables_of(warehouse, lambda: spark), "c1") == (1, 6, 12)
    finally:
        spark.sql("DROP DATABASE known CASCADE")
        for name in ("brokers", "current_brokers"):
            spark.catalog.dropTempView(name)
