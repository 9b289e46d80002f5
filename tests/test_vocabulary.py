"""Retired words are in no identifier, in code, tests or columns."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from quotaflow.pipelines.warehouse import views
from quotaflow.schemas.tables.catalog import TABLES

from .cases import cases

ROOT = Path(__file__).parents[1]
FOLDERS = (".ci", "broker", "conf", "demo", "pipelines", "schemas", "udfs", "tests", "bench")
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
)
RETIRED_PARTS = {
    **dict.fromkeys(("told", "telling"), "the thing itself: reported, rows, messages, error_text"),
    "untold": "unanswered",
    **dict.fromkeys(("asked", "asks"), "requested, request, probe, proposals"),
    "held": "cached (a frame), blocked (a row), owned (a config), acquired (a lock)",
    **dict.fromkeys(("standing", "stood"), "current, in_force, configured, previous"),
    "withheld": "blocked_reason, rejected",
    "keeper": "maintainer",
    "news": "lookup_changes, event",
    "touched": "affected",
    **dict.fromkeys(("loan", "lent"), "temporary_subscription"),
    "shipped": "worker_archive; shipper stays: it ships logs",
    "turn": "section (a lock), rotation, attempt",
    **dict.fromkeys(("span", "spans"), "time_range, duration_s; a span is OpenTelemetry's"),
    **dict.fromkeys(("said", "heard"), "messages, lines, error_text, received"),
    "looked": "checked, previewed, polled",
    "wanted": "desired, requested, target",
    **dict.fromkeys(("lacks", "lacking"), "missing"),
    **dict.fromkeys(("whose", "whom"), "owner, recipient"),
    "gone": "removed, missing, expired",
    "begun": "started, open",
    "lately": "recent",
    "tended": "upkeep_outcome",
}
"""Words that no part of a name is, each with what to write instead."""

RETIRED_NAMES = {
    "of": "what it is: row, group, columns; a class method: from_records",
    "found": "rows, match, findings, report",
    "known": "inputs, names, existing",
    "who": "principal, client, owner",
    "look": "check, poll, preview",
}
"""Words that no whole name is: `as_of` is fine."""


def retired_word(name: str) -> str | None:
    """The retired word in a name in snake case or camel case; None where it has none."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip("_")).lower()
    if snake in RETIRED_NAMES:
        return snake
    return next((part for part in snake.split("_") if part in RETIRED_PARTS), None)


def identifiers(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of whatever a module names; names of tests are sentences and are left out."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef(name=name) if name.startswith("test_"):
                pass
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.arg(arg=name)
                | ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store(), value=ast.Name(id="self"))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.ExceptHandler(name=str(name))
            ):
                yield node.lineno, name
            case ast.alias(asname=str(name)):
                yield node.lineno, name


def problems(source: str) -> list[str]:
    """One text for each identifier with a retired word."""
    return [
        f"line {line}: {name} ({word})"
        for line, name in identifiers(source)
        if (word := retired_word(name))
    ]


def test_no_identifier_has_a_retired_word() -> None:
    files = {path: problems((ROOT / path).read_text(encoding="utf-8")) for path in FILES}
    assert {path: texts for path, texts in files.items() if texts} == {}
    parts = {part for path in FILES for part in Path(path).with_suffix("").parts}
    assert {part for part in parts if retired_word(part)} == set()


def test_no_column_has_a_retired_word() -> None:
    columns = {f"{table.name}.{name}" for table in TABLES.values() for name in table.column_names}
    columns |= {
        f"{view.name}.{each.name}" for view in views.load().values() for each in view.columns
    }
    assert {name for name in columns if retired_word(name.partition(".")[2])} == set()


@cases(
    ("source", "expected"),
    ("a part", "told_rack = 1", ["line 1: told_rack (told)"]),
    ("a whole name", "def f(of): pass", ["line 1: of (of)"]),
    ("a part of another name", "as_of = not_found = 1", []),
    ("a class", "class Keeper: pass", ["line 1: Keeper (keeper)"]),
    ("camel case", "class ResultKeeper: pass", ["line 1: ResultKeeper (keeper)"]),
    ("a function", "def held(): pass", ["line 1: held (held)"]),
    ("a test's sentence", "def test_it_is_told(): pass", []),
    ("an alias", "import a as news", ["line 1: news (news)"]),
    ("on self", "class C:\n  def f(self):\n    self.asked = 1", ["line 3: asked (asked)"]),
    ("what others name", "print(told.asked)", []),
)
def test_a_planted_word_is_found(source: str, expected: list[str]) -> None:
    assert problems(source) == expected
