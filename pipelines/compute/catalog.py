"""Tasks over the tables of a catalog, which only Spark may read.

Facts reach the tasks as Arrow batches, with the columns that the texts name: one scan for all
results. Lookup tables are small and go to the tasks with their function.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from quotaflow.pipelines.compute.computation import CARRIED
from quotaflow.pipelines.compute.folder import OUTPUT_SQL, in_order
from quotaflow.pipelines.compute.relations import named_in, time_read
from quotaflow.pipelines.compute.schedule import TaskPlan
from quotaflow.pipelines.spark import frames
from quotaflow.pipelines.warehouse.delta_files import DataFile
from quotaflow.pipelines.warehouse.time_ranges import TimeRange, any_of, within_any
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import INT, TIMESTAMP
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.engine import task
from quotaflow.udfs.engine.rule import Relation
from quotaflow.udfs.engine.task import TASK, Task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PERIOD = timedelta(minutes=1)
_TIMES = pa.schema([("task", INT), ("task_start", TIMESTAMP), ("task_end", TIMESTAMP)])
_FOREVER = datetime(9999, 1, 1, tzinfo=UTC)


class CatalogTasks:
    """Tasks that get their facts from Spark's scan of a table."""

    def __init__(self, spark: "SparkSession", warehouse: Warehouse, memory_mb: int) -> None:
        self.spark = spark
        self.warehouse = warehouse
        self.memory_mb = memory_mb
        self._whole: dict[tuple[str, TimeRange | None], pa.Table] = {}

    def files(self, facts: str, ranges: Sequence[TimeRange]) -> Sequence[DataFile]:
        """The facts of the ranges by minute."""
        minute_us = _PERIOD // timedelta(microseconds=1)
        minute = F.floor(F.unix_micros("event_time") / F.lit(minute_us)).alias("minute")
        rows = self.warehouse.read(self.spark, facts).where(within_any(ranges, "event_time"))
        counted = rows.groupBy(minute).count().toArrow().to_pylist()
        starts = (datetime.fromtimestamp(0, UTC) + row["minute"] * _PERIOD for row in counted)
        return [
            DataFile("", row["count"], start, start + _PERIOD)
            for row, start in zip(counted, starts, strict=True)
        ]

    def run(self, plans: Sequence[TaskPlan]) -> pa.Table:
        """Compute tasks; rows as `task.OUTPUT`."""
        facts = plans[0].parts[0].result.facts.name
        named = set[str]().union(*(named_in(plan.parts) for plan in plans))
        columns = [name for name in TABLES[facts].column_names if name in named]
        schema = pa.schema([TABLES[facts].arrow.field(name) for name in columns])
        tasks = [
            Task(self._lookups(plan, named), [part.piece() for part in in_order(plan.parts)])
            for plan in plans
        ]
        if all(part.result.reads_all_facts for plan in plans for part in plan.parts):
            numbers = self.spark.range(0, len(tasks), 1, len(tasks))
            return numbers.mapInArrow(
                task.over_relations(tasks, self.memory_mb), OUTPUT_SQL
            ).toArrow()
        function = task.over_rows(tasks, facts, schema, self.memory_mb)
        rows = self._facts(plans, facts, columns)
        return rows.mapInArrow(function, OUTPUT_SQL).toArrow()

    def _facts(self, plans: Sequence[TaskPlan], facts: str, columns: list[str]) -> "DataFrame":
        """Facts with the number of each task that reads them; those of a task in one partition."""
        read = [time_read(plan.parts) for plan in plans]
        rows = self.warehouse.read(self.spark, facts).where(
            f"{within_any(read, 'event_time')} AND ({_of_any(plans)})"
        )
        rows = rows.select(*columns)
        if len(plans) == 1:
            return rows.coalesce(1).withColumn(TASK, F.lit(0))
        bounds = [
            {"task": number, "task_start": each.start, "task_end": each.end or _FOREVER}
            for number, each in enumerate(read)
        ]
        numbers = frames.from_arrow(self.spark, pa.Table.from_pylist(bounds, schema=_TIMES))
        is_in = F.col("event_time").between(F.col("task_start"), F.col("task_end"))
        # A join, because literal times in the generated Java would be compiled in each batch.
        spread = rows.join(F.broadcast(numbers), is_in)
        return spread.select(*columns, TASK).repartition(len(plans), TASK)

    def _lookups(self, plan: TaskPlan, named: set[str]) -> dict[str, Relation]:
        relations: dict[str, Relation] = {}
        for part in plan.parts:
            for relation, table, time in part.reads():
                if relation != part.result.facts.name or part.result.reads_all_facts:
                    columns = named if relation != CARRIED else set(TABLES[table].column_names)
                    relations[relation] = self._rows(table, time, columns)
        return relations

    def _rows(self, name: str, time: TimeRange | None, named: set[str]) -> pa.Table:
        key = (name, time)
        if key not in self._whole:
            table = TABLES[name]
            rows = self.warehouse.read(self.spark, name)
            if time is not None:
                rows = rows.where(within_any([time], table.time))
            columns = [column for column in table.column_names if column in named]
            schema = pa.schema([table.arrow.field(column) for column in columns])
            self._whole[key] = rows.select(*columns).toArrow().cast(schema)
        return self._whole[key]


def _of_any(plans: Sequence[TaskPlan]) -> str:
    """SQL of Spark for the facts that some part reads: few rules look far back, at few facts."""
    return any_of(
        dict.fromkeys(
            f"{part.facts_read().condition('event_time')} AND ({_in_spark(part.result.relevant)})"
            for plan in plans
            for part in plan.parts
        )
    )


def _in_spark(relevant: str) -> str:
    """The facts that a rule reads; all of them if Spark reads a text in the condition otherwise."""
    return "true" if "\\" in relevant else relevant
