"""The page: sections as one HTML file that loads nothing from a network."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quotaflow.pipelines.areas.scope import MAX_POINTS, MAX_ROWS
from quotaflow.pipelines.report import templates
from quotaflow.pipelines.report.first_screen import first_screen
from quotaflow.pipelines.report.head import head

if TYPE_CHECKING:
    from quotaflow.pipelines.areas.scope import Scope
    from quotaflow.pipelines.report.first_screen import Block
    from quotaflow.pipelines.report.incidents import Card
    from quotaflow.pipelines.report.section import ReportSection

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
