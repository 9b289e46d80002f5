"""Tasks over the tables of a folder: they read the tables' files themselves."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from quotaflow.pipelines.engine.relations import FolderRelations, named_in, time_read
from quotaflow.pipelines.engine.schedule import Part, TaskPlan
from quotaflow.pipelines.warehouse.delta_files import DataFile
from quotaflow.pipelines.warehouse.time_ranges import TimeRange, in_duckdb
from quotaflow.schemas.table import sql_type
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.engine import task
from quotaflow.udfs.engine.task import OUTPUT, Kept, Piece, Task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUTPUT_SQL = ", ".join(f"`{column.name}` {sql_type(column.type)}" for column in OUTPUT)


class FolderTasks:
    """Tasks that read the files of one version of each table."""

    def __init__(self, spark: "SparkSession", folder: Path, memory_mb: int) -> None:
        self.spark = spark
        self.relations = FolderRelations(folder)
        self.memory_mb = memory_mb

    def files(self, facts: str, ranges: Sequence[TimeRange]) -> Sequence[DataFile]:
        """The files of the facts with rows of the ranges."""
        return self.relations.within(facts, ranges)

    def run(self, plans: Sequence[TaskPlan]) -> pa.Table:
        """Compute tasks; rows as `task.OUTPUT`."""
        tasks = [folder_task(plan, self.relations) for plan in plans]
        numbers = self.spark.range(0, len(tasks), 1, len(tasks))
        return numbers.mapInArrow(task.over_relations(tasks, self.memory_mb), OUTPUT_SQL).toArrow()


def folder_task(plan: TaskPlan, relations: FolderRelations) -> Task:
    """A task: its pieces, and the files that they read."""
    return Task(relations.for_parts(plan.parts), pieces(plan), _kept(plan))


def _kept(plan: TaskPlan) -> list[Kept]:
    """What the parts of a task read: the facts of its time, and lookup tables.

    Texts name the same tables many times, and to bind files takes longer than to bind a table.
    """
    named = named_in(plan.parts)
    within = time_read(plan.parts).condition("event_time", in_duckdb)
    where: dict[str, str] = {}
    for part in plan.parts:
        computation = part.computation
        # A task of keys reads all facts and keeps few.
        if not computation.reads_all_facts and part.keys is None:
            where[computation.facts] = within
        for name, is_within in computation.lookups.items():
            where[name] = within if is_within and where.get(name) != "true" else "true"
    return [
        Kept(name, tuple(c for c in TABLES[name].column_names if c in named), condition)
        for name, condition in where.items()
    ]


def pieces(plan: TaskPlan) -> list[Piece]:
    """What a task computes of each of its parts."""
    return [_piece(part) for part in plan.parts]


def _piece(part: Part) -> Piece:
    computation, ranges = part.computation, part.ranges
    return Piece(
        computation.rule_over(ranges),
        computation.selections(ranges, part.keys),
        computation.where(ranges),
    )
