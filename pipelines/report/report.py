"""A report on one cluster: every section, or the command that fills its tables."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from quotaflow.pipelines.areas.finding import Finding
from quotaflow.pipelines.areas.pipeline import SECTION_FAILED
from quotaflow.pipelines.areas.scope import MAX_POINTS, MAX_ROWS, Scope
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
    templates,
)
from quotaflow.pipelines.report.first_screen import blocks, first_screen
from quotaflow.pipelines.report.head import head
from quotaflow.pipelines.report.incidents import cards
from quotaflow.pipelines.report.section import ReportSection
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.reader import each
from quotaflow.schemas.levels import IN_WORDS
from quotaflow.schemas.tables.catalog import TABLES

if TYPE_CHECKING:
    from quotaflow.pipelines.report.first_screen import Block
    from quotaflow.pipelines.report.incidents import Card

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


_TEMPLATE, _STYLE = "page.html.j2", "page.css"


def page(
    sections: "Sequence[ReportSection]",
    scope: "Scope",
    blocks: "Sequence[Block]" = (),
    cards: "Sequence[Card]" = (),
) -> str:
    """HTML of the first screen, with cards, alarms of the sections and `blocks`, and of sections.

    Every text is escaped. Raises MissingToolError if jinja2 is not installed.
    """
    return (
        templates.environment()
        .get_template(_TEMPLATE)
        .render(
            sections=sections,
            shown=first_screen(sections, blocks, cards),
            head=head(scope),
            max_rows=MAX_ROWS,
            max_points=MAX_POINTS,
            style=templates.read(_STYLE),
        )
    )
