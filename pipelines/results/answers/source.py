"""What a refresh needs of a warehouse, in a folder or in a catalog."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import pyarrow as pa

from quotaflow.pipelines.results.answers.answer import Answer
from quotaflow.schemas.table import Table

QUIET = timedelta(days=1)
"""Lookbacks are measured before the newest row of a table, and texts measure them by cluster. So
this is added: a cluster may be silent for as long before its rows leave an answer."""

SETTINGS = """
    SELECT setting, max(CAST(setting_value AS DOUBLE)) AS number
    FROM current_settings
    WHERE setting IN ({})
    GROUP BY setting
"""


@dataclass(frozen=True, slots=True)
class Computed:
    """The rows of an answer, and from when on they differ though no input changes."""

    rows: pa.Table
    expires_at: datetime | None = None


class Source(Protocol):
    """The tables that answers are computed from."""

    def stamp(self, table: str) -> str | None:
        """Text that is another one after each commit to a table; None if it does not exist."""
        ...

    def rows(self, table: Table) -> pa.Table:
        """All rows of an existing table."""
        ...

    def compute(self, answer: Answer) -> Computed:
        """The rows of an answer; a table that does not exist has none.

        Raises the errors of `failures`.
        """
        ...

    def changed(self, table: str) -> None:
        """Note that a table was written: read its newest version from now on."""
        ...

    @property
    def threads(self) -> int:
        """How many threads may compute answers at the same time."""
        ...

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What `compute` raises if an answer cannot be computed."""
        ...


def since(
    answer: Answer, table: str, newest: datetime, now: datetime, settings: dict[str, float]
) -> datetime:
    """The time from which an answer reads a table that `lookbacks` names.

    A row from a clock that is ahead must not hide all others, so no row counts as newer than `now`.
    """
    return min(newest, now) - answer.lookbacks[table].length(settings) - QUIET


def setting_names(answer: Answer) -> list[str]:
    """The settings that the lookbacks of an answer name."""
    return sorted({each.setting for each in answer.lookbacks.values() if each.setting})
