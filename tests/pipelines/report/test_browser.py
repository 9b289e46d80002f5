"""The report in a browser: all is drawn, readable, reached by keyboard, and fits a phone."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from quotaflow.pipelines.report.first_screen import blocks
from quotaflow.pipelines.report.page import page
from quotaflow.pipelines.report.section import ReportSection
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from . import looks
from .browser import Browser, browser
from .pages import scope

_PHONE_PX = (390, 844)
_HEIGHT = "document.documentElement.scrollHeight"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests."""
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


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
    shown: Browser, file: Path, report_sections: Sequence[ReportSection]
) -> None:
    for width_px, is_dark in ((375, False), (768, False), (1_280, True)):
        shown.open(file, width_px, is_dark=is_dark)
        assert shown.problems == []
        assert [url for url in shown.requests if not url.startswith("data:")] == [file.as_uri()]
        assert shown.value("document.documentElement.scrollWidth") <= width_px
        assert shown.value(looks.TOO_WIDE) == []
        assert shown.value("document.querySelectorAll('.chart').length") >= len(report_sections)
        assert shown.value(looks.UNDRAWN) == []
        assert shown.value(looks.UNREADABLE) == []
        assert shown.value(looks.PALE) == []
        is_table_shown = shown.value("document.querySelector('table').checkVisibility()")
        assert is_table_shown is (width_px > 704), "a phone folds tables"
    paper = "getComputedStyle(document.body).backgroundColor"
    assert shown.value(paper) == "rgb(13, 17, 23)"
    ink = "getComputedStyle(document.querySelector('.chart text.name')).fill"
    assert shown.value(ink) == "rgb(230, 237, 243)", "charts follow"
    expected, reached = looks.stops(shown)
    assert reached == expected, "the Tab key reaches each link and table, and one sees where it is"


def test_a_phone_shows_five_screens_and_unfolds_by_keyboard_and_by_links(
    shown: Browser, file: Path
) -> None:
    width_px, screen_px = _PHONE_PX
    shown.open(file, width_px)
    assert shown.value(_HEIGHT) <= 5 * screen_px
    assert shown.value(looks.PALE) == []
    expected, reached = looks.stops(shown)
    assert reached == expected
    shown.value("document.querySelector('main summary').focus()")
    looks.press(shown, "Enter")
    assert shown.value("document.querySelector('main details').open")
    assert shown.value("document.querySelector('main .chart').checkVisibility()")
    shown.value("document.querySelector('.alarms a').focus()")
    looks.press(shown, "Enter")
    assert shown.value("document.querySelector(':target').closest('details').open")
    head = "document.querySelector(':target').closest('section').querySelector('h2')"
    assert 0 <= shown.value(f"{head}.getBoundingClientRect().top") < screen_px


def test_without_scripts_and_on_paper_all_is_there(shown: Browser, file: Path) -> None:
    shown.open(file, 794, media="print")
    assert shown.value(looks.HIDDEN) == []
    assert shown.value(looks.PALE) == []
    try:
        shown.ask("Emulation.setScriptExecutionDisabled", value=True)
        shown.open(file, 1_280)
        assert shown.value(looks.HIDDEN) == []
        assert shown.value(looks.UNDRAWN) == []
    finally:
        shown.ask("Emulation.setScriptExecutionDisabled", value=False)
