"""The page: sections as one HTML file that loads nothing from a network."""

import re
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING

from quotaflow.pipelines import extras
from quotaflow.pipelines.errors import MissingToolError
from quotaflow.pipelines.report import texts
from quotaflow.pipelines.report.first_screen import MAX_SHOWN, to_dos
from quotaflow.pipelines.report.scope import MAX_POINTS
from quotaflow.pipelines.report.section import MAX_ROWS, NOW, SOMETIME, SOON

if TYPE_CHECKING:
    from quotaflow.pipelines.report.first_screen import Block
    from quotaflow.pipelines.report.scope import Scope
    from quotaflow.pipelines.report.section import ReportSection

_TEMPLATE, _STYLE = "page.html.j2", "page.css"
_WORD_END = re.compile(r"([._])(?=\w)")
_COMMAND = re.compile("`([^`]+)`")
_RANKS = {NOW: "Now", SOON: "Soon", SOMETIME: "Sometime"}


def page(
    sections: "Sequence[ReportSection]", scope: "Scope", blocks: "Sequence[Block]" = ()
) -> str:
    """HTML of the first screen, with the alarms of the sections and `blocks`, and of the sections.

    Every text is escaped. Raises MissingToolError if jinja2 is not installed.
    """
    try:
        from jinja2 import Environment, StrictUndefined  # noqa: PLC0415  extras of their own
        from markupsafe import Markup, escape  # noqa: PLC0415
    except ModuleNotFoundError as error:
        install = extras.install("report")
        raise MissingToolError(f"a report needs {error.name}: {install}") from error
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_read(_TEMPLATE)).render(
        sections=sections,
        to_dos=to_dos(sections),
        blocks=blocks,
        max_shown=MAX_SHOWN,
        ranks=_RANKS,
        scope=scope,
        time_range=texts.time_range(scope.since, scope.until),
        age=texts.age(scope.until, scope.now),
        made_at=texts.moment(scope.now),
        cluster=texts.listed(scope.cluster_id) if scope.cluster_id else "",
        of=scope.conf.cluster,
        where=texts.listed(scope.conf.warehouse.catalog_schema or ""),
        max_rows=MAX_ROWS,
        max_points=MAX_POINTS,
        style=_read(_STYLE),
        # Names of configs and metrics may break after each word.
        breakable=lambda text: Markup(  # noqa: S704  escaped first
            _WORD_END.sub(r"\1<wbr>", str(escape(text)))
        ),
        marked=lambda text: Markup(  # noqa: S704  escaped first
            _COMMAND.sub(r"<code>\1</code>", str(escape(text)))
        ),
    )


def _read(name: str) -> str:
    assert __package__
    return (resources.files(__package__) / name).read_text(encoding="utf-8")
