"""The pages in a browser: no errors, on desk and phone, and by keyboard."""

from dataclasses import dataclass
from urllib.parse import quote

import pytest

from quotaflow.pipelines.areas import quotas
from quotaflow.pipelines.areas import why as answer
from quotaflow.pipelines.serve.access import Access
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ..report import looks
from ..report.browser import Browser
from ..report.pages import HOSTILE
from .serving_pages import served, site

TOKEN = "t" * 32
_FOCUSED = "document.activeElement.id"


@dataclass(frozen=True, slots=True)
class Address:
    """A page's address, as the browser takes those of files."""

    url: str

    def as_uri(self) -> str:
        return self.url


@pytest.fixture(autouse=True)
def one_area(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `why` says is tested elsewhere, and all its areas take a second."""
    monkeypatch.setattr(answer, "AREAS", (quotas,))


def test_a_page_of_a_hostile_name_is_whole_and_goes_by_keyboard(
    tab: Browser, filled: Warehouse
) -> None:
    with served(site(filled)) as url:
        for width_px, is_dark in ((390, True), (1_280, False)):
            tab.open(Address(f"{url}client?name={quote(HOSTILE)}"), width_px, is_dark=is_dark)
            assert tab.problems == []
            assert all(each.startswith((url, "data:")) for each in tab.requests)
            assert tab.value("document.documentElement.scrollWidth") <= width_px
            assert tab.value("document.querySelectorAll('.chart').length") == 4
            assert tab.value(looks.PALE) == []
        expected, reached = looks.stops(tab)
        assert reached == expected
        looks.press(tab, "/")
        assert tab.value(_FOCUSED) == "q"
        tab.value("document.querySelector('main .scroll').focus()")
        tab.value("replace(document.documentElement.outerHTML)")
        assert tab.value("document.activeElement.closest('main') !== null"), "news keep the focus"
        tab.value("refresh()")
        assert "no table changed" in tab.value("document.getElementById('state').textContent")
        assert tab.problems == []


def test_the_token_opens_the_pages(tab: Browser, filled: Warehouse) -> None:
    with served(site(filled), Access(TOKEN.encode())) as url:
        tab.open(Address(f"{url}find"), 390)
        assert tab.value("document.querySelectorAll('.names').length") == 0
        tab.value(f"document.getElementById('token').value = '{TOKEN}'")
        tab.is_loaded = False
        tab.value("document.querySelector('button').click()")
        while not tab.is_loaded:
            tab.next_message()
        assert tab.value("document.querySelectorAll('.names').length") > 0
