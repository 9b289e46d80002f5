"""What the cluster answered for one table, and where it did not."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pyarrow as pa

from quotaflow.schemas.table import Table

Row = Mapping[str, Any]
_ROWS_PER_BATCH = 5_000


@dataclass(frozen=True, slots=True)
class UnansweredPart:
    """What was refused or not answered, and why: the name of Kafka's error.

    Standing rows with the values `of` stay as they are, all of them where it is empty; or only
    those `columns` of all rows do, where some are named.
    """

    reason: str
    identity: Row = field(default_factory=dict)
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ObservedRows:
    """Rows as the cluster told them, without cluster, time and is_removed, and the gaps in them."""

    table: Table
    rows: pa.Table
    unanswered: tuple[UnansweredPart, ...] = ()

    @property
    def is_unanswered(self) -> bool:
        """Whether the cluster told nothing of all this, not even that there is nothing."""
        return not self.rows.num_rows and any(
            not (gap.identity or gap.columns) for gap in self.unanswered
        )


def collect(
    table: Table, answers: Iterable[Row | UnansweredPart], unknown: Iterable[str] = ()
) -> ObservedRows:
    """Take in what the cluster tells, a batch at a time: as dicts all of it would be too much.

    `unknown` are columns that it is not asked for.
    """
    gaps: list[UnansweredPart] = []
    rows = _rows(answers, gaps)
    batches = []
    while chunk := list(islice(rows, _ROWS_PER_BATCH)):
        batches.append(pa.RecordBatch.from_pylist(chunk, schema=_schema(table)))
    content = pa.Table.from_batches(batches, schema=_schema(table))
    missing = {*unknown, *(column for gap in gaps for column in gap.columns)}
    return ObservedRows(table, content.drop_columns(sorted(missing)), tuple(gaps))


def _rows(told: Iterable[Row | UnansweredPart], gaps: list[UnansweredPart]) -> Iterable[Row]:
    for each in told:
        if isinstance(each, UnansweredPart):
            gaps.append(each)
        else:
            yield each


def _schema(table: Table) -> pa.Schema:
    known = {"cluster_id", table.time, "is_removed"}
    return pa.schema([field for field in table.arrow if field.name not in known])
