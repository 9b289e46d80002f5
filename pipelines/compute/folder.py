"""Tasks over the tables of a folder or an object store: they read the files themselves."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from quotaflow.pipelines.compute.computation import Computation
from quotaflow.pipelines.compute.relations import FolderRelations, named_in
from quotaflow.pipelines.compute.schedule import TaskPlan
from quotaflow.pipelines.warehouse.delta_files import DataFile
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.time_ranges import TimeRange, any_of
from quotaflow.schemas.table import sql_columns
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.engine import task
from quotaflow.udfs.engine.database import Selection
from quotaflow.udfs.engine.rule import Files
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
    pieces = [
        _with_files(part.piece(), relations.for_parts([part])) for part in in_order(plan.parts)
    ]
    return Task(relations.for_parts(plan.parts), pieces, _kept(plan))


def _with_files(made: Piece, files: Mapping[str, Files]) -> Piece:
    read = {name: replace(each, files=files[name]) for name, each in made.selections.items()}
    return replace(made, selections=read)


def _kept(plan: TaskPlan) -> list[Kept]:
    """What a task reads from files once: lookup tables, and the facts of its parts if they are few.

    Texts name the same tables many times, and to bind files takes longer than to bind a table.
    """
    named = named_in(plan.parts)
    # To keep many facts takes longer than to read them again, and a task of keys needs few.
    is_small = plan.facts <= _KEPT_FACTS and all(part.keys is None for part in plan.parts)
    read: dict[str, set[Selection]] = {}
    for part in plan.parts:
        names = {lookup.table.name for lookup in part.result.lookups}
        names |= {part.result.facts.name} if is_small else set()
        for name, selection in part.selections().items():
            if name in names:
                read.setdefault(name, set()).add(selection)
    return [
        Kept(name, tuple(c for c in TABLES[name].column_names if c in named), _any_of(selections))
        for name, selections in read.items()
    ]


def _any_of(selections: Collection[Selection]) -> Selection:
    """The rows of any of these."""
    where, in_files = ({each.where for each in selections}, {each.in_files for each in selections})
    return Selection(_any(where), in_files=_any(in_files))


def _any(conditions: Collection[str]) -> str:
    return "true" if "true" in conditions else any_of(sorted(conditions))


def in_order(parts: Iterable[Computation]) -> list[Computation]:
    """Parts that read the same facts one after the other: they share the views of these facts."""

    def facts_read(part: Computation) -> str:
        return part.selections().get(part.result.facts.name, Selection()).where

    return sorted(parts, key=facts_read)
