"""Frames of tables in an object store: read by Python, written as files that delta-rs commits."""

import hashlib
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.schemas.table import Table, sql_columns
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.table_files import FILE, TableFile, Target, described

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from quotaflow.udfs.table_source import StoredTable

_FILE_SQL = sql_columns(FILE)


def read(spark: "SparkSession", place: Place, table: str, version: int | None) -> "DataFrame":
    """All rows of a table in one version, the newest without one."""
    stored = _stored(place, table, TABLES[table].column_names, 0, version)
    return spark.read.format(_registered(spark, stored)).load()


def stream_format(
    spark: "SparkSession", place: Place, table: str, columns: Collection[str], max_bytes: int
) -> str:
    """The format of a stream of rows appended to a table, registered in the session.

    A micro-batch has at most so many bytes of files, or one file. `columns` may have the one that
    `udfs.table_source` adds.
    """
    return _registered(spark, _stored(place, table, columns, max_bytes, None))


def written(frame: "DataFrame", target: Target) -> list[dict[str, Any]]:
    """Write rows into files, one by each task; returns rows of `table_files.FILE` to commit."""
    files = frame.mapInArrow(_writing(target), _FILE_SQL).toArrow()
    rows: list[dict[str, Any]] = files.to_pylist()
    return rows


def _writing(target: Target) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with TableFile(target) as file:
            for batch in batches:
                file.write(pa.Table.from_batches([batch]).cast(target.schema))
        yield described([file])

    return run


def _stored(
    place: Place, name: str, columns: Collection[str], max_bytes: int, version: int | None
) -> "StoredTable":
    from quotaflow.udfs.table_source import StoredTable  # noqa: PLC0415  imports pyspark

    table: Table = TABLES[name]
    if place.store is None:
        raise AssertionError(f"{place.root} is no object store")
    return StoredTable(
        uri=place.path(name),
        schema=table.arrow,
        is_dated=bool(table.partitioning),
        store=place.store,
        options=place.storage_options or {},
        columns=tuple(columns),
        max_bytes=max_bytes,
        version=version,
    )


def _registered(spark: "SparkSession", stored: "StoredTable") -> str:
    """The name of a source of one table. Raises ConfigError where Spark has no such sources."""
    try:
        from quotaflow.udfs.table_source import source_of  # noqa: PLC0415  imports pyspark
    except ImportError:
        raise ConfigError("tables in an object store need Spark 4.2 or later") from None
    # Another table, or other columns of it, must not take its place while a frame is made of it.
    about = f"{stored.uri} {stored.columns} {stored.version} {stored.max_bytes}"
    name = f"quotaflow_{hashlib.sha256(about.encode()).hexdigest()[:16]}"
    spark.dataSource.register(source_of(name, stored))
    return name
