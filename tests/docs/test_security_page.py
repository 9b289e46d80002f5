"""docs/security.md claims only what something holds: each file and test that it names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:tests|schemas|pipelines|pyproject)[\w/.]*(?:::\w+)?)`", PAGE)))
# The part of a page that claims, up to what it leaves to others.
CLAIMS = PAGE[PAGE.index("## What is done about it") : PAGE.index("## Left to you")]


@pytest.mark.parametrize("named", NAMED)
def test_what_the_page_names_is_there(named: str) -> None:
    file, _, test = named.partition("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    assert f"def {test}(" in text if test else text


def test_every_claim_of_a_table_names_what_holds_it() -> None:
    rows = re.findall(r"^\| (?:claim|where it goes) .*\n\|[- |]+\n((?:\|.*\n)+)", CLAIMS, re.M)
    claims = [line for table in rows for line in table.splitlines()]
    assert [line for line in claims if "`tests/" not in line and "`pyproject" not in line] == [
        "| file names | none is made of a client's text | |"
    ]
    assert len(claims) > len(rows) > 1
