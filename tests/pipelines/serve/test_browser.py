"""The pages in a browser: no errors, on desk and phone, and by keyboard."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

import pytest

from quotaflow.pipelines.advice.why import answer, quotas
from quotaflow.pipelines.serve.access import Access
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ..report import looks
from ..report.browser import Browser, browser
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


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests."""
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def one_area(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `why` says is tested elsewhere, and all its areas take a second."""
    monkeypatch.setattr(answer, "AREAS", (quotas,))


def test_a_page_of_a_hostile_name_is_whole_and_goes_by_keyboard(
    shown: Browser, filled: Warehouse
) -> None:
    with served(site(filled)) as url:
        for width_px, is_dark in ((390, True), (1_280, False)):
            shown.open(Address(f"{url}client?name={quote(HOSTILE)}"), width_px, is_dark=is_dark)
            assert shown.problems == []
            assert all(each.startswith((url, "data:")) for each in shown.requests)
            assert shown.value("document.documentElement.scrollWidth") <= width_px
            assert shown.value("document.querySelectorAll('.chart').length") == 1
            assert shown.value(looks.PALE) == []
        expected, reached = looks.stops(shown)
        assert reached == expected
        looks.press(shown, "/")
        assert shown.value(_FOCUSED) == "q"
        shown.value("document.querySelector('main .scroll').focus()")
        shown.value("replace(document.documentElement.outerHTML)")
        assert shown.value("document.activeElement.closest('main') !== null"), "news keep the focus"
        shown.value("refresh()")
        assert "no table changed" in shown.value("document.getElementById('state').textContent")
        assert shown.problems == []


def test_the_token_opens_the_pages(shown: Browser, filled: Warehouse) -> None:
    with served(site(filled), Access(TOKEN.encode())) as url:
        shown.open(Address(f"{url}find"), 390)
        assert shown.value("document.querySelectorAll('.names').length") == 0
        shown.value(f"document.getElementById('token').value = '{TOKEN}'")
        shown.is_loaded = False
        shown.value("document.querySelector('button').click()")
        while not shown.is_loaded:
            shown.next_message()
        assert shown.value("document.querySelectorAll('.names').length") > 0
