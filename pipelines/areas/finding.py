"""A finding: one sentence, the rows that are its evidence, how bad it is, and the next step."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from quotaflow.pipelines.reasons.wording import UNKNOWN as NOT_KNOWN
from quotaflow.pipelines.reasons.wording import name

Row = Mapping[str, Any]

_LARGE = 1_000
NOW, SOON, SOMETIME = 1, 2, 3
"""Severities of a problem: clients or data suffer; a limit is near or a state is wrong; an
improvement."""
PROBLEM, FACT, NOTHING, UNKNOWN = "problem", "fact", "nothing", "unknown"
"""States of a finding: something to change; something to know; the tables were asked and have
nothing; they could not be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One sentence about a cluster or a name.

    A problem has the `code` of its kind and a severity. `evidence` has columns of a row of
    `evidence_table`.
    """

    text: str
    code: str | None = None
    severity: int | None = None
    next_step: str | None = None
    evidence_table: str = ""
    evidence: Row = field(default_factory=dict)
    state: str = FACT

    @property
    def is_problem(self) -> bool:
        """Whether something should change."""
        return self.state == PROBLEM


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
