"""What the cluster answered for one table, and the parts that it did not answer."""

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
    """A part of a snapshot that was refused or not answered; `reason` names Kafka's error.

    Current rows with the values of `identity` stay as they are: all rows if it is empty. If
    `columns` are named, only those columns stay, in all rows.
    """

    reason: str
    identity: Row = field(default_factory=dict)
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ObservedRows:
    """Rows from the cluster, without cluster, time and is_removed, and their unanswered parts."""

    table: Table
    rows: pa.Table
    unanswered: tuple[UnansweredPart, ...] = ()

    @property
    def is_unanswered(self) -> bool:
        """Whether the cluster answered nothing for the table, not even that it has no rows."""
        return not self.rows.num_rows and any(
            not (gap.identity or gap.columns) for gap in self.unanswered
        )


def collect(
    table: Table, answers: Iterable[Row | UnansweredPart], unknown: Iterable[str] = ()
) -> ObservedRows:
    """Collect answers batch by batch: all of them as dicts would take too much memory.

    `unknown` are columns that the answers do not have.
    """
    gaps: list[UnansweredPart] = []
    rows = _rows(answers, gaps)
    batches = []
    while chunk := list(islice(rows, _ROWS_PER_BATCH)):
        batches.append(pa.RecordBatch.from_pylist(chunk, schema=_schema(table)))
    content = pa.Table.from_batches(batches, schema=_schema(table))
    missing = {*unknown, *(column for gap in gaps for column in gap.columns)}
    return ObservedRows(table, content.drop_columns(sorted(missing)), tuple(gaps))


def _rows(answers: Iterable[Row | UnansweredPart], gaps: list[UnansweredPart]) -> Iterable[Row]:
    for each in answers:
        if isinstance(each, UnansweredPart):
            gaps.append(each)
        else:
            yield each


def _schema(table: Table) -> pa.Schema:
    added_later = {"cluster_id", table.time, "is_removed"}
    return pa.schema([field for field in table.arrow if field.name not in added_later])
