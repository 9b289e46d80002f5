"""The page of features: `python -m tests.features` prints what tests are marked to show.

A live test is marked `shows` with the feature that it shows on a real cluster.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
_HEAD = """\
# What quotaflow does, and what shows it

This page is for engineers who evaluate quotaflow. It answers: what does quotaflow do, and which
test shows it on a real
cluster? `quotaflow demo` shows the tables: it fails if one has no rows at its end.

| feature | test |
| --- | --- |
"""


class Feature(NamedTuple):
    """What a test shows, and where the test is."""

    words: str
    file: str
    test: str


def features() -> Iterator[Feature]:
    """Each feature that a test is marked to show, by file."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        if "mark.shows(" not in source:
            continue
        for node in ast.parse(source).body:
            if not isinstance(node, ast.FunctionDef):
                continue
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.shows":
                    words = ast.literal_eval(mark.args[0])
                    yield Feature(words, path.relative_to(ROOT).as_posix(), node.name)


def text() -> str:
    """The page, in Markdown."""
    rows = (f"| {each.words} | `{each.file}::{each.test}` |\n" for each in features())
    return _HEAD + "".join(rows)


if __name__ == "__main__":
    sys.stdout.write(text())
