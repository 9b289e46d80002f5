"""Runs computations on the same facts together, in Spark's tasks.

In a folder or an object store, tasks read the tables' files. In a catalog only Spark may read
tables: there tasks get the facts as Arrow batches, and the lookup tables with their function.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from quotaflow.pipelines.compute.catalog import CatalogTasks
from quotaflow.pipelines.compute.computation import Computation
from quotaflow.pipelines.compute.folder import FolderTasks
from quotaflow.pipelines.compute.result import WHOLE, Result
from quotaflow.pipelines.compute.schedule import (
    ROWS_PER_TASK,
    TASKS_AT_ONCE,
    TaskPlan,
    task_plans,
    waves,
)
from quotaflow.pipelines.errors import QuotaflowError
from quotaflow.pipelines.warehouse.delta_files import DataFile
from quotaflow.pipelines.warehouse.time_ranges import TimeRange, merged
from quotaflow.pipelines.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TRIES = 3
_MISSING_FILES = ("No files found that match", "No such file or directory")
_MESSAGE_CHARS = 1_000


class RuleError(QuotaflowError):
    """A rule that failed in a task, with the engine's message."""


class MissingFilesError(Exception):
    """A file was removed between its naming and its reading, as vacuum does."""


class Tasks(Protocol):
    """How tasks read tables in one kind of warehouse."""

    def files(self, facts: str, ranges: Sequence[TimeRange]) -> Sequence[DataFile]:
        """The facts by file or by period: how many there are, and when."""
        ...

    def run(self, plans: Sequence[TaskPlan]) -> pa.Table:
        """Compute tasks; rows as `task.OUTPUT`."""
        ...


@dataclass(frozen=True, slots=True)
class Computed:
    """Rows of one result for some ranges, or the error that replaces them."""

    result: Result
    ranges: tuple[TimeRange, ...]
    rows: pa.Table
    error: RuleError | None = None


@dataclass(frozen=True, slots=True)
class Engine:
    """Computes results in tasks. `open_tasks` opens the newest version of each table.

    Without `reads_by_key` each task of some keys would be sent all facts, so only sequential rules
    are split by keys.
    """

    open_tasks: Callable[[], Tasks]
    rows_per_task: int = ROWS_PER_TASK
    tasks_at_once: int = TASKS_AT_ONCE
    reads_by_key: bool = True

    def run(self, computations: Sequence[Computation]) -> Iterator[Computed]:
        """Compute rules on the same facts; each wave of time is yielded when it is computed.

        Of a rule that fails in one wave, no rows of the next ones are yielded.
        """
        tasks = self.open_tasks()
        if not self.reads_by_key:
            computations = [
                each if each.result.carry_s else _unsplit(each) for each in computations
            ]
        ranges = merged(time_range for each in computations for time_range in each.ranges)
        files = tasks.files(computations[0].result.facts.name, ranges)
        failed = set[str]()
        for wave in waves(task_plans(computations, files, self.rows_per_task), self.tasks_at_once):
            for computed in self._computed(wave, tasks):
                name = computed.result.rule.name
                if name not in failed:
                    yield computed
                if computed.error:
                    failed.add(name)

    def _computed(self, wave: list[TaskPlan], tasks: Tasks) -> list[Computed]:
        for tries_left in reversed(range(_TRIES)):
            try:
                return _by_result(wave, tasks.run(wave))
            except MissingFilesError:
                if not tries_left:
                    raise
                tasks = self.open_tasks()
        raise AssertionError("the last try returns or raises")


def spark_engine(spark: "SparkSession", warehouse: Warehouse, memory_mb: int) -> Engine:
    """An engine in the tasks of a Spark session, each with at most `memory_mb` for its SQL."""
    cores = int(str(spark.conf.get("spark.sql.shuffle.partitions")))
    at_once = max(cores, TASKS_AT_ONCE)
    if warehouse.conf.catalog_schema:
        return Engine(
            lambda: CatalogTasks(spark, warehouse, memory_mb),
            tasks_at_once=at_once,
            reads_by_key=False,
        )
    return Engine(lambda: FolderTasks(spark, warehouse.place, memory_mb), tasks_at_once=at_once)


def _unsplit(computation: Computation) -> Computation:
    return replace(computation, result=replace(computation.result, split=WHOLE))


def _by_result(wave: Sequence[TaskPlan], output: pa.Table) -> list[Computed]:
    streams: dict[str, list[pa.Table]] = {}
    errors: dict[str, RuleError] = {}
    for row in output.to_pylist():
        if row["error"] is None:
            streams.setdefault(row["rule"], []).append(pa.ipc.open_stream(row["rows"]).read_all())
        else:
            errors.setdefault(row["rule"], _error(row))
    parts: dict[str, tuple[Result, list[TimeRange]]] = {}
    for plan in wave:
        for part in plan.parts:
            _, ranges = parts.setdefault(part.name, (part.result, []))
            ranges.extend(part.ranges)
    return [
        Computed(
            result,
            tuple(merged(ranges)),
            pa.concat_tables([result.rule.schema.empty_table(), *streams.get(name, [])]),
            errors.get(name),
        )
        for name, (result, ranges) in parts.items()
    ]


def _error(row: dict[str, str]) -> RuleError:
    if row["error_type"] == "IOException" and any(text in row["error"] for text in _MISSING_FILES):
        raise MissingFilesError(row["error"])
    message = " ".join(row["error"].split())[:_MESSAGE_CHARS]
    return RuleError(f"{row['error_type']}: {message}")
