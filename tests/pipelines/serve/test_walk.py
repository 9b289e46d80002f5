"""Every page that links reach, over hostile names in every table, has the markup of plain names."""

import re
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import pytest
from justhtml import StrictModeError

from quotaflow.pipelines import config
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...cases import cases
from ...schemas.views.view_tables import make_tables_and_answers
from ..report import pages as rows_of
from .markup import Mark, Markup
from .serving_pages import site

PLAIN = tuple(
    "y" * len(name) if len(name) > 1_000 else f"name {n}" for n, name in enumerate(rows_of.NAMES)
)
OTHERS = {
    *("altered_by", "altered_by_client_id", "client_address", "client_pattern", "detail", "host"),
    *("list_malformed", "list_set_by", "list_set_by_client_id", "log_dir", "member_id", "rack"),
    *("rack_id", "rate_set_by", "rate_set_by_client_id", "requested_by", "set_by", "user"),
    *("transactional_id", "connection_id", "assignor", "process_id", "entity_client_id"),
}
"""Texts of clients and operators beside the names that reports plant."""
KINDS = {"/", "/find", "/client", "/principal", "/group", "/topic", "/broker", "/move"}


def filled(folder: Path, names: Sequence[str]) -> Warehouse:
    warehouse = Warehouse(config.WarehouseSection(path=str(folder)))
    with (
        mock.patch.object(rows_of, "NAMES", names),
        mock.patch.object(rows_of, "_NAMED", rows_of._NAMED | OTHERS),
    ):
        rows = {
            table: [
                rows_of.hostile(row, place + n)
                for n in range(2)
                for place, row in enumerate(content)
            ]
            for table, content in rows_of.CONTENT.items()
        }
    make_tables_and_answers(warehouse, rows)
    return warehouse


def walked(warehouse: Warehouse) -> dict[str, tuple[int, Markup]]:
    """The pages that links reach from the first one."""
    pages = site(warehouse)
    read: dict[str, tuple[int, Markup]] = {}
    left = deque(["/"])
    while left:
        path = left.popleft()
        if path not in read and not path.startswith("/static"):
            answer = pages.answer(path)
            read[path] = int(answer.status), Markup(answer.body.decode())
            left += read[path][1].links
    return read


@cases(
    ("text", "problem"),
    ("a handler", "<p onclick=a>", ("p", "onclick")),
    ("a script", "<script>alert(1)</script>", ("script", "")),
    ("a style", "<style>p {}</style>", ("style", "")),
    ("another site", "<a href=//evil.example>a</a>", ("a", "href", "elsewhere: //evil.example")),
    ("a script as link", "<a href=javascript:a>a</a>", ("a", "href", "elsewhere: javascript:a")),
    ("an override of direction", "\u202e", ("\u202e",)),
    ("an escape", "\x1b[2J", ("\x1b",)),
)
def test_the_parser_notices(text: str, problem: Mark) -> None:
    page = "<!DOCTYPE html><html lang=en><head><title>t</title></head><body>{}</body></html>"
    try:
        assert Markup(page.format(text)).problems == [problem]
    except StrictModeError:
        assert problem[0] == "\x1b", "the standard forbids it"
    assert Markup(page.format("<p class=a>b</p>")).problems == []


@pytest.mark.faults
def test_no_name_adds_markup_to_any_page(tmp_path: Path) -> None:
    plain = walked(filled(tmp_path / "plain", PLAIN))
    hostile = walked(filled(tmp_path / "hostile", rows_of.NAMES))
    expected: set[Mark] = set().union(*(page.marks for _, page in plain.values()))
    for path, (status, page) in hostile.items():
        assert page.marks - expected == set(), path
        assert page.problems == [], path
        assert status == 200 or "admin" in path, path
    for pages in (plain, hostile):
        assert {re.split("[?]", path)[0] for path in pages} == KINDS
        assert len(pages) > 30
