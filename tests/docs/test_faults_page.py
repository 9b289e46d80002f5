"""docs/faults.md: every fault names a test that makes it happen, and options that exist."""

import re

from .pages import text_of

PAGE = text_of("docs/faults.md")


def test_every_fault_has_a_test() -> None:
    tables = re.findall(r"^\| fault \|.*\| test \|$\n^\|[- |]+$\n((?:^\|.*\|$\n?)+)", PAGE, re.M)
    rows = [row for table in tables for row in table.splitlines()]
    assert len(rows) > 20
    assert [row for row in rows if not re.search(r"`tests/[\w/]+\.py::\w+` \|$", row)] == []


def test_options_the_page_names_are_there() -> None:
    command = text_of("pipelines/commands/jobs.py")
    named = set(re.findall(r"`(?:quotaflow run )?(--[\w-]+)`", PAGE))
    assert {option for option in named if f'"{option}"' not in command} == set()
