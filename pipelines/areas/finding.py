"""Kinds of problems, and findings: a sentence, its evidence, how bad it is, the next step."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from quotaflow.pipelines.areas.question import Question, Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.reasons.wording import UNKNOWN as NOT_KNOWN
from quotaflow.pipelines.reasons.wording import name
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted

NOW, SOON, SOMETIME = 1, 2, 3
"""Severities of a problem: clients or data suffer; a limit is near or a state is wrong; an
improvement."""
PROBLEM, FACT, NOTHING, UNKNOWN = "problem", "fact", "nothing", "unknown"
"""States of a finding: something to change; something to know; the tables were asked and have
nothing; they could not be asked."""


def no_step(_rows: Sequence[Row]) -> str:
    """No step of its own: the advice of its section says what to do."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A kind of problem: its code, and how bad it is (NOW, SOON, SOMETIME)."""

    code: str
    severity: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowProblem(Problem):
    """A kind of problem that rows of a question are, each of a subject that `subject` names.

    `subjects` says in the plural what they are, such as "clients throttled". `table` is their
    evidence. `summary` and `action` word all rows of a cluster.
    """

    subjects: str
    subject: tuple[str, ...]
    table: str
    question: Question
    summary: Callable[[Sequence[Row]], str]
    action: Callable[[Sequence[Row]], str] = no_step

    def of_rows(self, rows: Sequence[Row]) -> "Iterator[Finding]":
        """One finding about all rows, if there are some."""
        if rows:
            yield Finding(
                text=self.summary(rows),
                problem=self,
                next_step=self.action(rows),
                evidence_table=self.table,
                evidence=rows[0],
            )

    def of_row(self, row: Row, text: str, next_step: str | None = None) -> "Finding":
        """A finding about one row."""
        return Finding(
            text=text,
            problem=self,
            next_step=next_step,
            evidence_table=self.table,
            evidence=row,
        )

    @property
    def count(self) -> str:
        """SQL that counts its subjects by cluster, with its code and its words."""
        names = ", ".join(("cluster_id", *self.subject))
        return (
            f"SELECT cluster_id, '{self.code}' AS code, '{self.subjects}' AS what, "
            f"count(*) AS found FROM (SELECT DISTINCT {names} FROM ({self.question.sql}) "
            "AS every_row) AS subjects GROUP BY cluster_id"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One sentence about a cluster or a name: a problem of a kind, or what its state says.

    `evidence` has columns of a row of `evidence_table`.
    """

    text: str
    problem: Problem | None = None
    state: str = FACT
    next_step: str | None = None
    is_hint: bool = False
    """It could be better, and is no problem: its area is not fine."""
    evidence_table: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.problem is not None:
            object.__setattr__(self, "state", PROBLEM)

    @property
    def code(self) -> str | None:
        """The code of its kind of problem; None if it is none."""
        return None if self.problem is None else self.problem.code

    @property
    def severity(self) -> int | None:
        """How bad it is; None if it is no problem."""
        return None if self.problem is None else self.problem.severity


def in_cluster(scope: Scope, problems: Iterable[RowProblem]) -> Iterator[Finding]:
    """What is wrong in a cluster: one finding of each kind that has rows.

    A kind whose tables were never made has none.
    """
    for problem in problems:
        yield from problem.of_rows(scope.ask_if_made(problem.question))


def moment(time: datetime | None) -> str:
    """A time in UTC, to the second; ? if unknown."""
    return NOT_KNOWN if time is None else f"{time:%Y-%m-%d %H:%M:%S} UTC"


def client_text(row: Row) -> str:
    """A client of a row: its principal, and its client id if it has one; cut and escaped.

    Of a program it says how many client ids the row is about.
    """
    principal, ids = name(row, "principal"), row.get("client_ids") or 0
    several = f" ({counted(ids, 'client id')})" if ids > 1 else ""
    return f"{principal} as {name(row, 'client_id')}{several}" if row["client_id"] else principal


def amount(value: float | None) -> str:
    """A number without an exponent: whole from a thousand on, else six digits; ? if unknown."""
    if value is None:
        return NOT_KNOWN
    return texts.precise(value)


def last_day(tables: str) -> Finding:
    """What is said of a time that tables of the last day do not cover."""
    return Finding(
        text="Not known: it is computed for the last day of the tables only.",
        state=UNKNOWN,
        next_step="leave --at out",
        evidence_table=tables,
    )
