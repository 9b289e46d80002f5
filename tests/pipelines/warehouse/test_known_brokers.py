"""The brokers whose numbers count in names: those that the last snapshot of a cluster has."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from quotaflow.pipelines.errors import QueryError
from quotaflow.pipelines.warehouse.known_brokers import known_brokers
from quotaflow.pipelines.warehouse.readers import reader_of
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import BROKERS

from ...delta_tables import Fill
from ...rows import Row, row

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


def brokers(rows: Iterable[tuple[str, int, int, bool]]) -> list[Row]:
    return [
        row("brokers", 60 * minute, {"cluster_id": c, "broker_id": n, "is_removed": is_removed})
        for c, n, minute, is_removed in rows
    ]


def test_the_current_brokers_of_the_cluster_count(warehouse: Warehouse, fill: Fill) -> None:
    def of_cluster(cluster_id: str) -> tuple[int, ...]:
        return known_brokers(reader_of(warehouse, lambda: pytest.fail("no session")), cluster_id)

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
        known_brokers(reader_of(warehouse, lambda: pytest.fail("no session")), "c1")


@pytest.mark.spark
def test_a_catalog_has_the_same(spark: "SparkSession", catalog: Warehouse) -> None:
    assert known_brokers(reader_of(catalog, lambda: spark), "c1") == ()
    catalog.ensure(lambda: spark, [BROKERS])
    rows = pa.Table.from_pylist(brokers(ROWS), schema=BROKERS.arrow)
    spark.createDataFrame(rows).writeTo(catalog.target("brokers")).append()
    assert known_brokers(reader_of(catalog, lambda: spark), "c1") == (1, 6, 12)
