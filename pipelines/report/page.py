"""The page: sections as one HTML file that asks nothing of any network."""

from collections.abc import Sequence
from datetime import datetime
from importlib import resources
from typing import TYPE_CHECKING

from quotaflow.pipelines.errors import MissingToolError

if TYPE_CHECKING:
    from quotaflow.pipelines.report.section import Section

_TEMPLATE = "page.html.j2"


def page(sections: "Sequence[Section]", made_at: datetime, where: str) -> str:
    """HTML of the sections, made at a time from the tables at a place.

    Every text is escaped. Raises MissingToolError where the packages for it are not installed.
    """
    try:
        from jinja2 import Environment, StrictUndefined  # noqa: PLC0415  extras of their own
        from plotly.offline import get_plotlyjs  # noqa: PLC0415
    except ModuleNotFoundError as error:
        install = "pip install 'quotaflow[report]'"
        raise MissingToolError(f"a report needs {error.name}: {install}") from error
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    source = (resources.files(__package__) / _TEMPLATE).read_text(encoding="utf-8")
    return environment.from_string(source).render(
        sections=sections,
        made_at=made_at,
        where=where,
        plotly=get_plotlyjs(),
        # In a script JSON may hold no `<`: `</script>` in a name would end it.
        script_json=lambda text: text.replace("<", "\\u003c"),
    )
