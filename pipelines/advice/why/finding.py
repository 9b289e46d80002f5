"""A finding: one sentence about a name, with the row that is its evidence and the next step."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from quotaflow.pipelines.reasons.wording import UNKNOWN as NOT_KNOWN
from quotaflow.pipelines.reasons.wording import name

if TYPE_CHECKING:
    from quotaflow.pipelines.advice.why.scope import Scope

Row = Mapping[str, Any]

_LARGE = 1_000
PROBLEM, FACT, NOTHING, UNKNOWN = "problem", "fact", "nothing", "unknown"
"""States of a finding: something to change; something to know; the tables were asked and have
nothing; they could not be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One sentence; `evidence` has columns of a row of `evidence_table`."""

    text: str
    state: str = FACT
    next_step: str | None = None
    evidence_table: str
    evidence: Row = field(default_factory=dict)


class Area(Protocol):
    """A module that asks tables about one kind of cause."""

    @property
    def NAME(self) -> str:  # noqa: N802  a constant of the module
        """The area's name, in snake case."""
        ...

    @property
    def TABLES(self) -> tuple[str, ...]:  # noqa: N802  a constant of the module
        """The tables and views that it asks."""
        ...

    def findings(self, scope: "Scope") -> Iterator[Finding]:
        """What the area's tables have about the scope's subject; nothing if they have nothing."""
        ...


def moment(time: datetime | None) -> str:
    """A time in UTC, to the second; ? if unknown."""
    return NOT_KNOWN if time is None else f"{time:%Y-%m-%d %H:%M:%S} UTC"


def client_text(row: Row) -> str:
    """A client of a row: its principal, and its client id if it has one; cut and escaped."""
    principal = name(row, "principal")
    return f"{principal} as {name(row, 'client_id')}" if row["client_id"] else principal


def amount(value: float | None) -> str:
    """A number without an exponent: whole from a thousand on, else six digits; ? if unknown."""
    if value is None:
        return NOT_KNOWN
    return f"{value:,.0f}" if abs(value) >= _LARGE else f"{value:,.6g}"


def last_day(tables: str) -> Finding:
    """What is said of a time that tables of the last day do not cover."""
    return Finding(
        text="Not known: it is computed for the last day of the tables only.",
        state=UNKNOWN,
        next_step="leave --at out",
        evidence_table=tables,
    )
