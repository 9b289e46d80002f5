"""The report in a browser: every chart is drawn, without errors, and fits a phone."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from quotaflow.pipelines.report.page import page
from quotaflow.pipelines.report.section import ReportSection
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from .browser import Browser, browser
from .pages import scope

# Outside of charts, whose parts lie over each other.
_TOO_WIDE = """[...document.querySelectorAll("body *:not(thead, thead *, .scroll *, .chart *)")]
    .filter((part) => part.getBoundingClientRect().right > innerWidth + 1)
    .map((part) => part.outerHTML.slice(0, 80))"""
_UNDRAWN = """[...document.querySelectorAll(".chart")]
    .filter((place) => !place.querySelector("rect.bar, .bad, .plain, polyline, circle, path"))
    .filter((place) => !place.textContent.includes("No whole step"))
    .map((place) => place.getAttribute("aria-label"))"""
_UNREADABLE = """[...document.querySelectorAll(".chart text")]
    .filter((part) => /undefined|nan|inf/.test(part.textContent))
    .map((part) => part.textContent)"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests."""
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def test_a_page_full_of_hostile_names_is_whole_on_desk_and_phone(
    shown: Browser, filled: Warehouse, report_sections: Sequence[ReportSection], tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(report_sections, scope(filled)), encoding="utf-8")
    for width_px, is_dark in ((375, False), (768, False), (1_280, True)):
        shown.open(file, width_px, is_dark=is_dark)
        assert shown.problems == []
        assert [url for url in shown.requests if not url.startswith("data:")] == [file.as_uri()]
        assert shown.value("document.documentElement.scrollWidth") <= width_px
        assert shown.value(_TOO_WIDE) == []
        assert shown.value("document.querySelectorAll('.chart').length") >= len(report_sections)
        assert shown.value(_UNDRAWN) == []
        assert shown.value(_UNREADABLE) == []
        is_table_shown = shown.value("document.querySelector('table').checkVisibility()")
        assert is_table_shown is (width_px > 704), "a phone folds tables"
    paper = "getComputedStyle(document.body).backgroundColor"
    assert shown.value(paper) == "rgb(13, 17, 23)"
    ink = "getComputedStyle(document.querySelector('.chart text.name')).fill"
    assert shown.value(ink) == "rgb(230, 237, 243)", "charts follow"
