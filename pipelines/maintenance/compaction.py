"""Joins small files of a table, and deletes files that no version needs."""

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Protocol

from quotaflow.pipelines.warehouse import folder_tables
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Compactor(Protocol):
    """What upkeep does to the files of a table."""

    def compact(self, table: Table, today: date) -> None:
        """Join small files; of a partitioned table those of days before `today`."""
        ...

    def unused(self, table: Table, hours: int) -> int:
        """The number of files that no version of the last hours needs."""
        ...

    def vacuum(self, table: Table, hours: int) -> None:
        """Delete them."""
        ...


def compactor(spark: "SparkSession", warehouse: Warehouse) -> Compactor:
    """That of a warehouse: delta-rs in an object store, where Spark makes no commit, else Spark."""
    return DeltaRs(warehouse.place) if warehouse.conf.is_store else Spark(spark, warehouse)


@dataclass(frozen=True, slots=True)
class Spark:
    """By OPTIMIZE and VACUUM of Spark."""

    spark: "SparkSession"
    warehouse: Warehouse

    def compact(self, table: Table, today: date) -> None:
        """As `Compactor`."""
        past = f" WHERE event_date < date'{today}'" if table.partitioning else ""
        self.spark.sql(f"OPTIMIZE {self.warehouse.target(table.name)}{past}")

    def unused(self, table: Table, hours: int) -> int:
        """As `Compactor`."""
        return self.spark.sql(f"{self._vacuum(table, hours)} DRY RUN").count()

    def vacuum(self, table: Table, hours: int) -> None:
        """As `Compactor`."""
        self.spark.sql(self._vacuum(table, hours))

    def _vacuum(self, table: Table, hours: int) -> str:
        return f"VACUUM {self.warehouse.target(table.name)} RETAIN {hours} HOURS"


@dataclass(frozen=True, slots=True)
class DeltaRs:
    """By delta-rs: its commits exclude those of other writers. Raises JobError."""

    place: Place

    def compact(self, table: Table, today: date) -> None:
        """As `Compactor`."""
        past = [("event_date", "<", str(today))] if table.partitioning else None
        with folder_tables.as_job_error(table.name):
            live = self.place.open(table.name)
            live.optimize.compact(partition_filters=past)
            # A log that grows makes each opening slower: in a folder Spark does both.
            live.create_checkpoint()
            live.cleanup_metadata()

    def unused(self, table: Table, hours: int) -> int:
        """As `Compactor`."""
        with folder_tables.as_job_error(table.name):
            live = self.place.open(table.name)
            return len(live.vacuum(hours, dry_run=True, enforce_retention_duration=False))

    def vacuum(self, table: Table, hours: int) -> None:
        """As `Compactor`."""
        with folder_tables.as_job_error(table.name):
            live = self.place.open(table.name)
            live.vacuum(hours, dry_run=False, enforce_retention_duration=False)
