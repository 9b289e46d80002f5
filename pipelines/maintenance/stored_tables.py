"""What upkeep asks of tables, and does to their files.

In a catalog by Spark. In a folder and in an object store by DuckDB and delta-rs, without a JVM.
"""

from dataclasses import dataclass
from datetime import date
from threading import Event
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse import delta_files, folder_tables
from quotaflow.pipelines.warehouse.engine_errors import engine_errors
from quotaflow.pipelines.warehouse.row_writer import Replaced
from quotaflow.pipelines.warehouse.small_files import SmallFiles
from quotaflow.pipelines.warehouse.time_ranges import as_in_delta
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse
from quotaflow.schemas.table import Table
from quotaflow.udfs.engine.database import opened

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import SparkSession


BYTES_PER_FILE = 8 * 2**20
"""Upkeep in a folder writes at most so many bytes again to have one file less."""


class StoredTables(Protocol):
    """The tables of one warehouse."""

    def exists(self, table: Table) -> bool:
        """Whether a table is made."""
        ...

    def rows(
        self, table: Table, sql: str, schema: pa.Schema, version: int | None = None
    ) -> pa.Table:
        """The rows of a query over `stored`: a table as it is now, or in a version."""
        ...

    def remove(self, batch: Batch, table: Table, where: str, stay: str | None) -> None:
        """Remove the rows for which `where` is true, but not those of the query `stay`."""
        ...

    def compact(self, table: Table, today: date) -> None:
        """Join small files; of a partitioned table those of days before `today`."""
        ...

    def unused(self, table: Table, hours: int) -> int:
        """The number of files that no version of the last hours needs."""
        ...

    def vacuum(self, table: Table, hours: int) -> None:
        """Delete them."""
        ...


def stored_tables(warehouse: Warehouse, open_session: OpenSession, memory_mb: int) -> StoredTables:
    """Those of a warehouse. Queries of DuckDB take so much memory."""
    if warehouse.conf.catalog_schema:
        return BySpark(warehouse, open_session())
    return ByDeltaRs(warehouse, open_session, memory_mb)


@dataclass(frozen=True, slots=True)
class BySpark:
    """By Spark's SQL, OPTIMIZE and VACUUM."""

    warehouse: Warehouse
    spark: "SparkSession"

    def exists(self, table: Table) -> bool:
        """As `StoredTables`."""
        return self.warehouse.exists(self.spark, table.name)

    def rows(
        self, table: Table, sql: str, schema: pa.Schema, version: int | None = None
    ) -> pa.Table:
        """As `StoredTables`."""
        self.warehouse.read(self.spark, table.name, version).createOrReplaceTempView("stored")
        return self.spark.sql(sql).toArrow().cast(schema)

    def remove(self, batch: Batch, table: Table, where: str, stay: str | None) -> None:
        """As `StoredTables`."""
        if stay is None:
            self.spark.sql(f"DELETE FROM {self.warehouse.target(table.name)} WHERE {where}")
            return
        self.warehouse.read(self.spark, table.name).createOrReplaceTempView("stored")
        batch.replace(self.spark.sql(stay), table, where)

    def compact(self, table: Table, today: date) -> None:
        """As `StoredTables`."""
        past = f" WHERE event_date < date'{today}'" if table.partitioning else ""
        self.spark.sql(f"OPTIMIZE {self.warehouse.target(table.name)}{past}")

    def unused(self, table: Table, hours: int) -> int:
        """As `StoredTables`."""
        return self.spark.sql(f"{self._vacuum(table, hours)} DRY RUN").count()

    def vacuum(self, table: Table, hours: int) -> None:
        """As `StoredTables`."""
        self.spark.sql(self._vacuum(table, hours))

    def _vacuum(self, table: Table, hours: int) -> str:
        return f"VACUUM {self.warehouse.target(table.name)} RETAIN {hours} HOURS"


@dataclass(frozen=True, slots=True)
class ByDeltaRs:
    """By DuckDB and delta-rs, whose commits exclude each other. Raises JobError and QueryError.

    The session is opened only for a table with a feature that delta-rs cannot write.
    """

    warehouse: Warehouse
    open_session: OpenSession
    memory_mb: int

    def exists(self, table: Table) -> bool:
        """As `StoredTables`."""
        return self.warehouse.place.is_made(table.name)

    def rows(
        self, table: Table, sql: str, schema: pa.Schema, version: int | None = None
    ) -> pa.Table:
        """As `StoredTables`."""
        place = self.warehouse.place
        with engine_errors(sql):
            live = place.open(table.name)
            if version is not None:
                live.load_as_version(version)
            files = delta_files.of_version(live, place.path(table.name), table.time)
            stored = place.files(table, (file.path for file in files))
            with opened({"stored": stored}, self.memory_mb) as database:
                return pa.Table.from_batches(database.query(sql, schema), schema)

    def remove(self, batch: Batch, table: Table, where: str, stay: str | None) -> None:
        """As `StoredTables`."""
        rows = self.rows(table, stay or "SELECT * FROM stored WHERE false", table.arrow)
        batch.replace_rows(self.open_session, rows, table, Replaced(None, as_in_delta(where)))

    def compact(self, table: Table, today: date) -> None:
        """As `StoredTables`."""
        small = SmallFiles(self.warehouse, table, self.memory_mb, BYTES_PER_FILE)
        small.join(Event(), today)
        with folder_tables.as_job_error(table.name):
            live = self._open(table)
            # A log that grows makes each opening slower.
            live.create_checkpoint()
            live.cleanup_metadata()

    def unused(self, table: Table, hours: int) -> int:
        """As `StoredTables`."""
        return len(self._vacuum(table, hours, dry=True))

    def vacuum(self, table: Table, hours: int) -> None:
        """As `StoredTables`."""
        self._vacuum(table, hours, dry=False)

    def _vacuum(self, table: Table, hours: int, *, dry: bool) -> list[str]:
        with folder_tables.as_job_error(table.name):
            live = self._open(table)
            # Full: also files of a task or writer that ended before its commit.
            return live.vacuum(hours, dry_run=dry, enforce_retention_duration=False, full=True)

    def _open(self, table: Table) -> "DeltaTable":
        folder_tables.drop_checksum(self.warehouse.place, table.name)
        return self.warehouse.place.open(table.name)
