"""The report in a browser: all is drawn, readable, reached by keyboard, and fits a phone."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from quotaflow.pipelines.report.first_screen import blocks
from quotaflow.pipelines.report.page import page
from quotaflow.pipelines.report.section import ReportSection
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from . import looks
from .browser import Browser
from .pages import scope

_PHONE_PX = (390, 844)
_HEIGHT = "document.documentElement.scrollHeight"


@pytest.fixture(scope="module")
def file(
    filled: Warehouse,
    report_sections: Sequence[ReportSection],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The report on rows of every kind under hostile names."""
    made = scope(filled)
    written = tmp_path_factory.mktemp("page") / "report.html"
    text = page(report_sections, made, blocks(made, report_sections))
    written.write_text(text, encoding="utf-8")
    return written


def test_a_page_full_of_hostile_names_is_whole_on_desk_and_phone(
    tab: Browser, file: Path, report_sections: Sequence[ReportSection]
) -> None:
    for width_px, is_dark in ((375, False), (768, False), (1_280, True)):
        tab.open(file, width_px, is_dark=is_dark)
        assert tab.problems == []
        assert [url for url in tab.requests if not url.startswith("data:")] == [file.as_uri()]
        assert tab.value("document.documentElement.scrollWidth") <= width_px
        assert tab.value(looks.TOO_WIDE) == []
        assert tab.value("document.querySelectorAll('.chart').length") >= len(report_sections)
        assert tab.value(looks.UNDRAWN) == []
        assert tab.value(looks.UNREADABLE) == []
        assert tab.value(looks.PALE) == []
        is_table_shown = tab.value("document.querySelector('table').checkVisibility()")
        assert is_table_shown is (width_px > 704), "a phone folds tables"
    paper = "getComputedStyle(document.body).backgroundColor"
    assert tab.value(paper) == "rgb(13, 17, 23)"
    ink = "getComputedStyle(document.querySelector('.chart text.name')).fill"
    assert tab.value(ink) == "rgb(230, 237, 243)", "charts follow"
    expected, reached = looks.stops(tab)
    assert reached == expected, "the Tab key reaches each link and table, and one sees where it is"


def test_a_phone_shows_five_screens_and_unfolds_by_keyboard_and_by_links(
    tab: Browser, file: Path
) -> None:
    width_px, screen_px = _PHONE_PX
    tab.open(file, width_px)
    assert tab.value(_HEIGHT) <= 5 * screen_px
    assert tab.value(looks.PALE) == []
    expected, reached = looks.stops(tab)
    assert reached == expected
    tab.value("document.querySelector('main summary').focus()")
    looks.press(tab, "Enter")
    assert tab.value("document.querySelector('main details').open")
    assert tab.value("document.querySelector('main .chart').checkVisibility()")
    tab.value("document.querySelector('.alarms a').focus()")
    looks.press(tab, "Enter")
    assert tab.value("document.querySelector(':target').closest('details').open")
    head = "document.querySelector(':target').closest('section').querySelector('h2')"
    assert 0 <= tab.value(f"{head}.getBoundingClientRect().top") < screen_px


def test_without_scripts_and_on_paper_all_is_there(tab: Browser, file: Path) -> None:
    tab.open(file, 794, media="print")
    assert tab.value(looks.HIDDEN) == []
    assert tab.value(looks.PALE) == []
    try:
        tab.ask("Emulation.setScriptExecutionDisabled", value=True)
        tab.open(file, 1_280)
        assert tab.value(looks.HIDDEN) == []
        assert tab.value(looks.UNDRAWN) == []
    finally:
        tab.ask("Emulation.setScriptExecutionDisabled", value=False)
