"""Tasks in this process, without Spark."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from quotaflow.pipelines.compute.folder import folder_task
from quotaflow.pipelines.compute.relations import FolderRelations
from quotaflow.pipelines.compute.schedule import TaskPlan
from quotaflow.pipelines.warehouse.delta_files import DataFile
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.udfs.engine.task import OUTPUT, over_relations


class LocalTasks:
    """Tasks over the tables of a folder that run in this process, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.relations = FolderRelations(Place.local(folder))

    def files(self, facts: str, ranges: Sequence[TimeRange]) -> Sequence[DataFile]:
        """The files of the facts with rows of the ranges."""
        return self.relations.within(facts, ranges)

    def run(self, plans: Sequence[TaskPlan]) -> pa.Table:
        """Compute tasks; rows as `task.OUTPUT`."""
        tasks = [folder_task(plan, self.relations) for plan in plans]
        numbers = pa.record_batch({"id": list(range(len(tasks)))})
        return pa.Table.from_batches(over_relations(tasks)(iter([numbers])), OUTPUT)
