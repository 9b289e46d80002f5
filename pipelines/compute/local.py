"""Rules in this process, without Spark: over the tables of a folder, or over rows of tests."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from quotaflow.pipelines.compute.computation import Computation, KeyPart
from quotaflow.pipelines.compute.relations import FolderRelations
from quotaflow.pipelines.compute.schedule import Part
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.udfs.engine.database import Database, opened
from quotaflow.udfs.engine.rule import Relation


def compute(computation: Computation, folder: Path) -> pa.Table:
    """The rows of a computation over the tables of a folder."""
    part = Part(computation, computation.ranges)
    return compute_over(computation, FolderRelations(Place.local(folder)).for_parts([part]))


def compute_over(computation: Computation, relations: Mapping[str, Relation]) -> pa.Table:
    """The rows of a computation over these relations."""
    with opened(relations) as database:
        return compute_in(database, computation)


def compute_in(
    database: Database, computation: Computation, keys: KeyPart | None = None
) -> pa.Table:
    """The rows of a computation, or those of some of its keys, over relations of a database."""
    ranges = computation.ranges
    rows = database.compute(
        computation.rule_over(ranges),
        computation.selections(ranges, keys),
        computation.where(ranges, keys),
    )
    return pa.Table.from_batches(rows, computation.rule.schema)
