"""Tasks over the tables of a folder: they read the tables' files themselves."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from quotaflow.pipelines.engine.relations import FolderRelations
from quotaflow.pipelines.engine.schedule import Part, Span
from quotaflow.pipelines.warehouse.delta_files import DataFile
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.schemas.table import sql_type
from quotaflow.udfs.engine import task
from quotaflow.udfs.engine.task import OUTPUT, Piece, Task

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

    def run(self, spans: Sequence[Span]) -> pa.Table:
        """Compute spans, one task each; rows as `task.OUTPUT`."""
        tasks = [Task(self.relations.of(span.parts), pieces(span)) for span in spans]
        numbers = self.spark.range(0, len(tasks), 1, len(tasks))
        return numbers.mapInArrow(task.over_relations(tasks, self.memory_mb), OUTPUT_SQL).toArrow()


def pieces(span: Span) -> list[Piece]:
    """What a task computes of each part of its span."""
    return [_piece(part) for part in span.parts]


def _piece(part: Part) -> Piece:
    computation, ranges = part.computation, part.ranges
    return Piece(
        computation.rule_over(ranges),
        computation.selections(ranges, part.keys),
        computation.where(ranges),
    )
