"""Asks every area about a name: what is wrong, what is known, and what was asked in vain."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from quotaflow.pipelines.areas import (
    changes,
    diagnoses,
    fetches,
    groups,
    latency,
    producer_ids,
    quotas,
    racks,
    reads,
    remote_reads,
    replication,
    telemetry,
    versions,
)
from quotaflow.pipelines.areas.about import Period, scope_about
from quotaflow.pipelines.areas.finding import FACT, NOTHING, SOON, UNKNOWN, Finding
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.areas.subject import Subject
from quotaflow.pipelines.areas.verdict import WhyVerdict, verdict
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import NeverMadeError, QueryError
from quotaflow.pipelines.jobs import fillers
from quotaflow.pipelines.warehouse.reader import Reader, each
from quotaflow.pipelines.warehouse.readers import going_on
from quotaflow.udfs.counted import counted


class WhyArea(Protocol):
    """A module that asks tables about one kind of cause."""

    @property
    def NAME(self) -> str:  # noqa: N802  a constant of the module
        """The area's name, in snake case."""
        ...

    @property
    def TABLES(self) -> tuple[str, ...]:  # noqa: N802  a constant of the module
        """The tables and views that it asks."""
        ...

    def findings(self, scope: Scope) -> Iterator[Finding]:
        """What the area's tables have about the scope's name; nothing if they have nothing."""
        ...


AREAS: tuple[WhyArea, ...] = (
    diagnoses,
    quotas,
    producer_ids,
    racks,
    fetches,
    groups,
    reads,
    remote_reads,
    latency,
    telemetry,
    replication,
    changes,
    versions,
)
"""Every area is asked about every name."""

_OTHERS = {
    *("current_client_quotas", "current_replicas"),
    *("rejected_pushes", "error_names", "producer_id_offenders"),
}
"""What areas read beside their tables."""
_OF_FACTS = {
    *("client_quotas", "current_client_quotas", "replication_throttles"),
    *("fetch_faults", "offset_resets", "lagging_reads", "remote_reads_by_hour"),
    *("clients_without_telemetry", "client_failures"),
}
"""What brief answers rarely read."""
_DETAILS = {
    *("config_alterations", "config_changes", "fetch_sizes", "client_latency", "requests"),
    "client_failures",
    *("current_client_quotas", "replication_throttles", "remote_reads_by_hour"),
    "clients_without_telemetry",
}
"""Of these nothing follows, and a brief answer leaves them out."""
_MAX_FACTS = 3
MAX_FINDINGS = 50
"""Findings of an area; a last one says that there are more."""


@dataclass(frozen=True, slots=True)
class AreaAnswer:
    """The findings of one area, problems first; at least one."""

    name: str
    findings: tuple[Finding, ...]

    @property
    def title(self) -> str:
        """Its name in words."""
        return self.name.replace("_", " ")

    @property
    def is_nothing(self) -> bool:
        """Whether it was asked in vain."""
        return [finding.state for finding in self.findings] == [NOTHING]

    @property
    def heading(self) -> str:
        """Its title, with how many problems it has, and what could be better."""
        ranks = [each.severity or SOON for each in self.findings if each.problem is not None]
        many = sum(rank <= SOON for rank in ranks)
        better = len(ranks) - many + self.hints
        counts = [counted(many, "problem")] if many else []
        counts += [f"{better} to improve"] if better else []
        return f"{self.title} ({', '.join(counts)})" if counts else self.title

    @property
    def shown(self) -> tuple[Finding, ...]:
        """All that is wrong or not known, and the first facts."""
        return tuple(finding for finding in self.findings if finding not in self.folded)

    @property
    def folded(self) -> tuple[Finding, ...]:
        """Facts that one screen has no room for."""
        return tuple(finding for finding in self.findings if finding.state == FACT)[_MAX_FACTS:]

    @property
    def is_fine(self) -> bool:
        """Whether it knows the name, and has nothing that could be better."""
        judged = [each for each in self.findings if each.evidence_table not in _DETAILS]
        states = {finding.state for finding in judged}
        return states <= {FACT, NOTHING} and FACT in states and not self.hints

    @property
    def hints(self) -> int:
        """What could be better and is no problem."""
        return sum(finding.is_hint and finding.problem is None for finding in self.findings)

    @property
    def is_problem(self) -> bool:
        """Whether something in it should change."""
        return any(finding.problem is not None for finding in self.findings)


@dataclass(frozen=True, slots=True)
class WhyAnswer:
    """What every area has about a name; areas with problems come first."""

    subject: Subject
    cluster_id: str | None
    start: datetime
    end: datetime
    areas: tuple[AreaAnswer, ...]
    verdict: WhyVerdict
    damages: tuple[str, ...] = ()
    """Damaged tables that would say more of the name."""

    @property
    def with_findings(self) -> tuple[AreaAnswer, ...]:
        """Areas that have findings."""
        return tuple(area for area in self.areas if not area.is_nothing)

    @property
    def nothing(self) -> str:
        """Which areas have nothing about the name; empty if each has something."""
        empty = [area.title for area in self.areas if area.is_nothing]
        return f"No findings about {', '.join(empty)}." if empty else ""


def why(
    reader: Reader,
    name: str,
    period: Period,
    cluster_id: str | None,
    conf: Conf,
    *,
    is_brief: bool = False,
) -> WhyAnswer:
    """Ask every area about `name`; a brief answer has problems alone, and the verdict.

    Raises as `about.scope_about`.
    """
    damages: list[str] = []
    questions = {table for area in AREAS for table in area.TABLES} | _OTHERS
    questions -= _OF_FACTS if is_brief else set()

    def scoped(tables: Reader) -> Scope:
        return scope_about(tables, name, period, cluster_id, conf, questions=questions)

    # An area that needs a damaged table says so.
    every = going_on(scoped, reader, damages.append)
    scope = replace(every, reader=reader, is_brief=is_brief)
    scope.gather(questions)
    assert scope.about is not None
    areas = sorted(
        each(reader, lambda area: _area_answer(area, scope), AREAS),
        key=lambda area: not area.is_problem,
    )
    of_areas = [area for area in areas if area.name != diagnoses.NAME]
    problems = [each for area in of_areas for each in area.findings if each.problem is not None]
    # Other areas know nothing of brokers.
    covered = [replication.NAME] if scope.about.subject.brokers else [area.name for area in areas]
    fine = [area.title for area in of_areas if area.is_fine and area.name in covered]
    hints = sum(area.hints for area in of_areas)
    return WhyAnswer(
        scope.about.subject,
        scope.cluster_id,
        scope.since,
        scope.until,
        tuple(areas),
        verdict(scope, problems, fine, hints),
        tuple(damages),
    )


def _area_answer(area: WhyArea, scope: Scope) -> AreaAnswer:
    every = sorted(
        (diagnoses.without_repeated(scope, each) for each in _findings(area, scope)),
        key=lambda finding: finding.problem is None,
    )
    shown = every[:MAX_FINDINGS]
    tables = ", ".join(area.TABLES)
    if len(every) > len(shown):
        shown.append(Finding(text=f"There are more: see {tables}.", evidence_table=tables))
    if not shown:
        shown = [Finding(text="No row is about this name.", state=NOTHING, evidence_table=tables)]
    return AreaAnswer(area.NAME, tuple(shown))


def _findings(area: WhyArea, scope: Scope) -> Iterator[Finding]:
    try:
        yield from area.findings(scope)
    except NeverMadeError as error:
        yield Finding(
            text=f"Not known: table {error.table} was never made.",
            state=UNKNOWN,
            next_step=fillers.hint(error.table),
            evidence_table=error.table,
        )
    except QueryError as error:
        yield Finding(text=f"Not known: {error}", state=UNKNOWN, evidence_table=area.TABLES[0])
