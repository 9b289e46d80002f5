"""The page: sections as one HTML file that loads nothing from a network."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quotaflow.pipelines.report import templates, texts
from quotaflow.pipelines.report.scope import MAX_POINTS
from quotaflow.pipelines.report.section import MAX_ROWS

if TYPE_CHECKING:
    from quotaflow.pipelines.report.scope import Scope
    from quotaflow.pipelines.report.section import Alarm, ReportSection

_TEMPLATE, _STYLE, _SCRIPT = "page.html.j2", "page.css", "page.js"


def page(sections: "Sequence[ReportSection]", scope: "Scope") -> str:
    """HTML of the sections, with their alarms first.

    Every text is escaped. Raises MissingToolError if jinja2 or plotly is not installed.
    """
    has_charts = any(section.charts for section in sections)
    return (
        templates.environment()
        .get_template(_TEMPLATE)
        .render(
            sections=sections,
            alarms=alarms(sections),
            scope=scope,
            time_range=texts.time_range(scope.since, scope.until),
            age=texts.age(scope.until, scope.now),
            made_at=texts.moment(scope.now),
            cluster=texts.listed(scope.cluster_id) if scope.cluster_id else "",
            where=texts.listed(scope.reader.warehouse.conf.location, texts.SENTENCE_CHARS),
            max_rows=MAX_ROWS,
            max_points=MAX_POINTS,
            style=templates.read(_STYLE),
            script=templates.read(_SCRIPT),
            plotly=templates.plotly_script() if has_charts else "",
        )
    )


def alarms(sections: "Sequence[ReportSection]") -> "list[tuple[Alarm, ReportSection]]":
    """Alarms, the most urgent first, each with its section."""
    every = [(alarm, section) for section in sections for alarm in section.alarms]
    return sorted(every, key=lambda pair: pair[0].rank)
