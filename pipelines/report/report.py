"""A report on one warehouse: every section; where tables lack, which command fills them."""

from collections.abc import Callable
from datetime import datetime

from quotaflow.pipelines.reader import NeverMadeError, Reader
from quotaflow.pipelines.report import rack_traffic
from quotaflow.pipelines.report.page import page
from quotaflow.pipelines.report.section import Section

_SECTIONS: tuple[tuple[str, Callable[[Reader], Section]], ...] = (
    (rack_traffic.TITLE, rack_traffic.section),
)


def report(reader: Reader, made_at: datetime) -> str:
    """The whole page as HTML.

    Raises NeverMadeError when no section has its tables, and MissingToolError without plotly.
    """
    sections, errors = list[Section](), list[NeverMadeError]()
    for title, section in _SECTIONS:
        try:
            sections.append(section(reader))
        except NeverMadeError as error:
            errors.append(error)
            sections.append(Section(title=title, sentences=(f"Nothing yet: {error}.",)))
    if len(errors) == len(_SECTIONS):
        raise errors[0]
    return page(sections, made_at, str(reader.warehouse.conf.folder))
