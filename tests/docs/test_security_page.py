"""docs/security.md claims only what something holds: each claim names a test."""

import re

from .pages import text_of

PAGE = text_of("docs/security.md")
# The part of a page that claims, up to what it leaves to others.
CLAIMS = PAGE[PAGE.index("## What is done about it") : PAGE.index("## Left to you")]


def test_every_claim_of_a_table_names_what_holds_it() -> None:
    rows = re.findall(r"^\| (?:claim|where it goes) .*\n\|[- |]+\n((?:\|.*\n)+)", CLAIMS, re.M)
    claims = [line for table in rows for line in table.splitlines()]
    assert [line for line in claims if "`tests/" not in line and "`pyproject" not in line] == []
    assert len(claims) > len(rows) > 1
