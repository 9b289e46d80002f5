"""Tasks over the tables of a folder or an object store: they read the files themselves."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from quotaflow.pipelines.engine.relations import FolderRelations, named_in, time_read
from quotaflow.pipelines.engine.schedule import Part, TaskPlan
from quotaflow.pipelines.warehouse.delta_files import DataFile
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.time_ranges import TimeRange, any_of, in_duckdb
from quotaflow.schemas.table import sql_columns
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.engine import task
from quotaflow.udfs.engine.task import OUTPUT, Kept, Piece, Task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KEPT_FACTS = 100_000
OUTPUT_SQL = sql_columns(OUTPUT)


class FolderTasks:
    """Tasks that read the files of one version of each table."""

    def __init__(self, spark: "SparkSession", place: Place, memory_mb: int) -> None:
        self.spark = spark
        self.relations = FolderRelations(place)
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
    """What a task reads from files once: lookup tables, and the facts of its time if they are few.

    Texts name the same tables many times, and to bind files takes longer than to bind a table.
    """
    named = named_in(plan.parts)
    within = time_read(plan.parts).condition("event_time", in_duckdb)
    where: dict[str, str] = {}
    for part in plan.parts:
        computation = part.computation
        # To keep many facts takes longer than to read them again, and a task of keys needs few.
        is_small = plan.facts <= _KEPT_FACTS and part.keys is None
        if is_small and not computation.reads_all_facts:
            where[computation.facts] = f"({within}) AND ({_relevant_to_any(plan.parts)})"
        for name, is_within in computation.lookups.items():
            where[name] = within if is_within and where.get(name) != "true" else "true"
    return [
        Kept(name, tuple(c for c in TABLES[name].column_names if c in named), condition)
        for name, condition in where.items()
    ]


def _relevant_to_any(parts: Sequence[Part]) -> str:
    conditions = {part.computation.relevant for part in parts}
    return "true" if "true" in conditions else any_of(sorted(conditions))


def pieces(plan: TaskPlan) -> list[Piece]:
    """What a task computes of each of its parts.

    All rules get the facts of the longest lookback, so that those with one condition on facts share
    the views that they read. Facts before a rule's own lookback change no row that is needed.
    """
    lookback = max(
        (part.computation.lookback for part in plan.parts if part.computation.carry is None),
        default=timedelta(0),
    )
    return [_piece(part, lookback) for part in plan.parts]


def _piece(part: Part, lookback: timedelta) -> Piece:
    computation, ranges = part.computation, part.ranges
    read = computation if computation.carry else replace(computation, lookback=lookback)
    return Piece(
        computation.rule_over(ranges),
        read.selections(ranges, part.keys),
        computation.where(ranges),
    )
