"""Rules in this process, without Spark: over the tables of a folder, or over rows of tests."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from quotaflow.pipelines.compute.computation import Computation
from quotaflow.pipelines.compute.relations import FolderRelations
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.udfs.engine.database import Database, opened
from quotaflow.udfs.engine.rule import Relation


def compute(computation: Computation, folder: Path) -> pa.Table:
    """The rows of a computation over the tables of a folder."""
    return compute_over(computation, FolderRelations(Place.local(folder)).for_parts([computation]))


def compute_over(computation: Computation, relations: Mapping[str, Relation]) -> pa.Table:
    """The rows of a computation over these relations."""
    with opened(relations) as database:
        return compute_in(database, computation)


def compute_in(database: Database, computation: Computation) -> pa.Table:
    """The rows of a computation over relations of a database."""
    piece = computation.piece()
    rows = database.compute(piece.rule, piece.selections, piece.where)
    return pa.Table.from_batches(rows, piece.rule.schema)
