"""docs/faults.md: every fault names a test that makes it happen."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_test_the_page_names_is_there(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_fault_has_a_test() -> None:
    tables = re.findall(r"^\| fault \|.*\| test \|$\n^\|[- |]+$\n((?:^\|.*\|$\n?)+)", PAGE, re.M)
    rows = [row for table in tables for row in table.splitlines()]
    assert len(rows) > 20
    assert [row for row in rows if not re.search(r"`tests/[\w/]+\.py::\w+` \|$", row)] == []


def test_options_the_page_names_are_there() -> None:
    command = (ROOT / "pipelines" / "commands" / "jobs.py").read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:quotaflow run )?(--[\w-]+)`", PAGE))
    assert {option for option in named if f'"{option}"' not in command} == set()
