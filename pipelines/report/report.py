"""A report on one cluster: every section, or the command that fills its tables."""

from collections.abc import Callable, Sequence

from quotaflow.pipelines.areas.finding import Finding
from quotaflow.pipelines.areas.pipeline import SECTION_FAILED
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.errors import NeverMadeError, QueryError
from quotaflow.pipelines.jobs import fillers
from quotaflow.pipelines.report import (
    changes,
    diagnoses,
    fetches,
    groups,
    health,
    overview,
    plan,
    producer_ids,
    quality,
    quotas,
    rack_traffic,
    replication,
    teams,
    telemetry,
)
from quotaflow.pipelines.report.first_screen import blocks
from quotaflow.pipelines.report.incidents import cards
from quotaflow.pipelines.report.page import page
from quotaflow.pipelines.report.section import ReportSection
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.reader import each
from quotaflow.schemas.levels import IN_WORDS
from quotaflow.schemas.tables.catalog import TABLES

SECTIONS: tuple[tuple[str, Callable[[Scope], ReportSection]], ...] = (
    (overview.TITLE, overview.section),
    (diagnoses.TITLE, diagnoses.section),
    (producer_ids.TITLE, producer_ids.section),
    (quotas.TITLE, quotas.section),
    (replication.TITLE, replication.section),
    (rack_traffic.TITLE, rack_traffic.section),
    (teams.TITLE, teams.section),
    (fetches.TITLE, fetches.section),
    (groups.TITLE, groups.section),
    (telemetry.TITLE, telemetry.section),
    (plan.TITLE, plan.section),
    (changes.TITLE, changes.section),
    (quality.TITLE, quality.section),
    (health.TITLE, health.section),
)
"""Every section in order, with its title."""


def report(scope: Scope) -> str:
    """The whole page as HTML. Raises MissingToolError without jinja2."""
    made = sections(scope)
    return page(made, scope, blocks(scope, made), cards(scope))


def sections(scope: Scope) -> Sequence[ReportSection]:
    """Every section in order; if one fails, its text says why, and the others go on."""
    scope.gather({*TABLES, *views.load()})
    return each(scope.reader, lambda section: _made(*section, scope), SECTIONS)


def _made(title: str, section: Callable[[Scope], ReportSection], scope: Scope) -> ReportSection:
    try:
        return section(scope)
    except NeverMadeError as error:
        level = IN_WORDS[TABLES[error.table].level]
        sentence = f"Nothing yet, for it needs {level}: {error}: {fillers.hint(error.table)}."
        return ReportSection(title, sentences=(sentence,))
    except QueryError as error:
        failure = f"It could not be computed: {error}"
        alarm = Finding(text=failure, problem=SECTION_FAILED)
        return ReportSection(title, sentences=(failure,), alarms=(alarm,))
