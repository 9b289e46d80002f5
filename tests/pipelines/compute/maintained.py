"""A warehouse with facts and results, and one query that follows the facts: without a JVM."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from quotaflow.pipelines import config
from quotaflow.pipelines.compute.affected import by_result, counting
from quotaflow.pipelines.compute.engine import Engine
from quotaflow.pipelines.compute.maintainer import ResultMaintainer
from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse import folder_tables
from quotaflow.pipelines.warehouse.time_ranges import EVER, TimeRange
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.declared import PIPELINE_PROGRESS
from quotaflow.udfs.engine.arrivals import ARRIVALS

from .local_tasks import LocalTasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_SPARK = cast("SparkSession", None)
"""Nothing here asks Spark: tables are in a folder, and tasks run in this process."""

Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Maintained:
    """Results over one table of facts, computed in tasks of `rows_per_task` facts."""

    warehouse: Warehouse
    results: tuple[Result, ...]
    conf: config.Conf
    rows_per_task: int = 100
    tasks_at_once: int = 2
    query_id: str = "first"

    @classmethod
    def make(cls, folder: Path, *results: Result, conf: config.Conf, **others: int) -> "Maintained":
        """An empty warehouse with all tables that the results read and fill."""
        warehouse = Warehouse(config.WarehouseSection(path=str(folder)))
        made = cls(warehouse, results, conf, **others)
        for result in results:
            made.create(result.facts, result.table, *(each.table for each in result.lookups))
        made.create(PIPELINE_PROGRESS)
        return made

    def create(self, *tables: Table) -> None:
        for table in tables:
            folder_tables.create(self.warehouse.place, table)

    def append(self, table: Table, rows: Rows) -> pa.Table:
        """Rows that a job of facts, or a snapshot, adds to a table."""
        content = pa.Table.from_pylist(rows, schema=table.arrow)
        write_deltalake(self.warehouse.folder(table.name), content, mode="append")
        return content

    def arrive(self, facts: Rows) -> pa.Table:
        return self.append(self.results[0].facts, facts)

    @property
    def maintainer(self) -> ResultMaintainer:
        return ResultMaintainer(self.results, self.conf.results, self._engine)

    def _engine(self, _: object, warehouse: Warehouse, __: int) -> Engine:
        folder = warehouse.conf.folder.resolve()
        return Engine(lambda: LocalTasks(folder), self.rows_per_task, self.tasks_at_once)

    def keep(self, facts: pa.Table, number: int, kind: type[Batch] = Batch) -> None:
        """One micro-batch of the query with these facts."""
        lateness_s = self.conf.results.max_lateness_s
        columns, count = counting(self.results, facts.column_names, lateness_s)
        batches = facts.select(columns).to_batches()
        arrived = pa.Table.from_batches(count(iter(batches)), ARRIVALS)
        self.maintainer.update(by_result(arrived), self.batch(number, kind), NO_SPARK)

    def refresh(self, number: int) -> None:
        """One run of the query without new facts."""
        self.maintainer.refresh(NO_SPARK, self.batch(number))

    def rebuild(self, time_range: TimeRange, number: int) -> int:
        batch = self.batch(number)
        return self.maintainer.rebuild(batch, NO_SPARK, time_range).total()

    def batch(self, number: int, kind: type[Batch] = Batch) -> Batch:
        return kind(self.warehouse, "job", self.query_id, number)

    def table(self, name: str | None = None) -> list[tuple[Any, ...]]:
        """All rows of a table in some fixed order."""
        table = DeltaTable(self.warehouse.folder(name or self.results[0].table.name))
        files = table.file_uris()
        if not files:
            return []
        columns = ", ".join(f'"{field.name}"' for field in table.schema().fields)
        sql = f"SELECT {columns} FROM read_parquet({files!r}, union_by_name = true)"
        return content(duckdb.sql(sql).to_arrow_table())

    def progress(self) -> dict[str, int]:
        """Counted rows by outcome."""
        rows = self.table(PIPELINE_PROGRESS.name)
        names = PIPELINE_PROGRESS.column_names
        counts: dict[str, int] = {}
        for row in (dict(zip(names, values, strict=True)) for values in rows):
            if row["query_id"] == self.query_id:
                counts[row["outcome"]] = counts.get(row["outcome"], 0) + row["row_count"]
        return counts

    def whole(self, facts: Rows, **lookups: Rows) -> list[tuple[Any, ...]]:
        """The pure function of the first result over all of these facts at once."""
        from ...rule_rows import compute  # noqa: PLC0415  a sibling of this package

        result = self.results[0]
        rows = compute(result, (EVER,), **{result.facts.name: facts}, **lookups)
        return content(pa.Table.from_pylist(rows, schema=result.table.arrow))


def content(rows: pa.Table) -> list[tuple[Any, ...]]:
    """The rows in some fixed order, times in UTC without a zone."""
    for number, column in enumerate(rows.schema):
        if pa.types.is_timestamp(column.type):
            naive = rows.column(number).cast(pa.timestamp("us"))
            rows = rows.set_column(number, column.name, naive)
    return sorted((tuple(row.values()) for row in rows.to_pylist()), key=str)


def is_late(fact: dict[str, Any], lateness_s: int) -> bool:
    if fact["record_time"] is None:
        return False
    delay: timedelta = fact["record_time"] - fact["event_time"]
    return delay > timedelta(seconds=lateness_s)
