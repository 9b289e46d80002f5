"""The pages of this repository, and the tests that they name."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


def text_of(name: str) -> str:
    """A file's text, by its path from the root."""
    return (ROOT / name).read_text(encoding="utf-8")


_NAMES = sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))
DOCS = {name: text_of(name) for name in _NAMES}
PAGES = {name: text_of(name) for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "README.md")} | DOCS


@cache
def functions_of(file: str) -> set[str]:
    """The functions of a module, its tests among them."""
    body = ast.parse(text_of(file)).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef)}
