"""What one batch of records becomes: rows of tables, and counts of every outcome."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

import pyarrow as pa


class Outcome(NamedTuple):
    """What became of rows: as in `pipeline_progress`."""

    outcome: str
    target: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """Rows by table name, the number of rows by outcome, and the newest record time."""

    tables: Mapping[str, pa.Table]
    counts: Counter[Outcome]
    newest: datetime | None


class FactReader(Protocol):
    """Makes facts of records: one task has one, and calls it batch by batch."""

    def read(self, records: pa.RecordBatch, now: datetime) -> Facts:
        """The facts of a batch. `now` is the time of a record that names none."""
        ...


class FactSource(Protocol):
    """What goes to a task: it opens the reader there, because a database cannot be sent."""

    def open(self) -> FactReader:
        """A reader for one task."""
        ...
