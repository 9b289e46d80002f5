"""A schema of a local catalog that has the tables of a folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from quotaflow.schemas.tables.catalog import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def of_folder(spark: "SparkSession", folder: Path, schema: str) -> Iterator[None]:
    """Until the block ends."""
    spark.sql(f"CREATE SCHEMA {schema} LOCATION '{folder}/_schema'")
    for name in TABLES:
        if (folder / name).is_dir():
            spark.sql(f"CREATE TABLE {schema}.{name} USING DELTA LOCATION '{folder / name}'")
    yield
    spark.sql(f"DROP SCHEMA {schema} CASCADE")
