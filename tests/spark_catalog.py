"""A schema of Spark's catalog for a test."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def catalog(spark: "SparkSession", tmp_path: Path) -> Iterator[Warehouse]:
    """A warehouse in an empty schema; with it go the names that the session has for its tables."""
    spark.sql(f"CREATE SCHEMA spark_catalog.made LOCATION '{tmp_path / 'catalog'}'")
    checkpoints = str(tmp_path / "checkpoints")
    place = {"catalog_schema": "spark_catalog.made", "checkpoints": checkpoints}
    yield Warehouse(config.WarehouseSection.model_validate(place))
    spark.sql("DROP SCHEMA spark_catalog.made CASCADE")
    for name in (*TABLES, *views.load()):
        spark.catalog.dropTempView(name)
