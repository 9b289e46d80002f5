"""Pages, help texts and docstrings are in plain English: no riddles, no long sentence."""

import ast
import re
from collections.abc import Iterator

import pytest
import typer

from quotaflow.demo import command as demo
from quotaflow.pipelines import __main__ as cli

from ..cases import cases
from . import pages
from .pages import ROOT, text_of

OTHERS = ("SECURITY.md", "bench/README.md", "broker/README.md")
PAGES = pages.PAGES | {name: text_of(name) for name in OTHERS}
# Its clauses are checked where it is made.
del PAGES["docs/sentences.md"]
MAX_WORDS = 35
MAX_LINES = 8
RIDDLES = {
    r"\b(fore)?told\b": "use: reports, logs, is known",
    r"\b(fore)?tells?\b": "use: shows, reports, returns, predicts",
    r"\bheld\b": "use: blocked, limited, has",
    r"\bmends?\b": "use: fix, repair",
    r"\bvalues?( is| are)? above (its|their) threshold": "use: a problem, which may have none",
    r"\b(who|what)ever\b": "use: a person who, all that",
    r"\banew\b": "use: again",
    r"\bas (it|they) came\b": "use: unchanged",
    r"\b(stands|stood)\b": "use: is, was, is set",
    r"\bas (it|they) stands?\b": "use: unchanged",
    r"\bof late\b": "use: recently",
    r"\bamid\b": "use: during, within",
    r"\bheed(s|ed)?\b": "use: apply, follow",
    r"\bis so\b": "use: the fact itself",
    r"\bwhat was not \w+ waits\b": "use: the next run sends the rest",
    r"((?<=[.:] )|^)Of (it|them|these|this|that)\b": "begin with the subject",
    r"\bsomebody\b": "use: a person, another login",
    r"\b(gave|give[ns]?|giving) back\b": "use: restore, revert",
    r"\bone sees\b": "use: symptom",
    r"\bbut for\b": "use: except for",
    r"\bfor want of\b": "use: because ... is missing",
}
"""Phrases that hide who does what, each with the plain words for it."""

ALLOWED: dict[str, int] = {}
"""How many problems a page still has. These numbers may only shrink."""


def blocks(page: str) -> Iterator[list[str]]:
    """Paragraphs, list items, rows of tables and headings, each as its lines."""
    block: list[str] = []
    page = re.sub(r"(?ms)^ *```.*?^ *```$", "", page)
    for line in re.sub(r"(?m)(?<=\n\n)(?: {4,}.*\n)+", "", page).splitlines():
        starts = re.match(r"\s*([-*|#>]|\d+\.) |\s*\|", line)
        if (not line.strip() or starts) and block:
            yield block
            block = []
        if line.strip():
            block.append(line.strip())
    if block:
        yield block


def sentences(text: str) -> list[str]:
    """Sentences of a paragraph; code counts as one word, a link as its text."""
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    return re.split(r"(?<=[.!?])[\"')*]*\s+(?=[A-Z\d\"'(*]|code)", text)


def problems(page: str) -> list[str]:
    """One text for each riddle, long sentence and long paragraph of a page."""
    texts = []
    for block in blocks(page):
        is_row = block[0].startswith("|")
        text = re.sub(r"^([-*>#]+|\d+\.) ", "", " ".join(block))
        plain = re.sub(r"`[^`]*`|\]\([^)]*\)", "code", text)
        texts += [
            f"{match[0]!r} ({plain_words}): {text[:60]}"
            for riddle, plain_words in RIDDLES.items()
            for match in re.finditer(riddle, plain)
        ]
        if is_row:
            continue
        if len(block) > MAX_LINES:
            texts.append(f"paragraph of {len(block)} lines: {text[:60]}")
        texts += [
            f"sentence of {len(sentence.split())} words: {sentence[:60]}"
            for sentence in sentences(text)
            if len(sentence.split()) > MAX_WORDS
        ]
    return texts


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_is_in_plain_english(name: str) -> None:
    observed = problems(PAGES[name])
    assert len(observed) <= ALLOWED.get(name, 0), "\n".join(observed)


def test_only_pages_are_allowed_problems() -> None:
    assert ALLOWED.keys() <= PAGES.keys()


def helps() -> Iterator[tuple[str, str]]:
    """The help texts of each command and of its options."""
    made = cli.app()
    demo.register(made)
    group = typer.main.get_command(made)
    assert isinstance(group, typer.core.TyperGroup)
    for name, command in group.commands.items():
        yield name, command.help or ""
        for parameter in command.params:
            yield f"{name} {parameter.name}", getattr(parameter, "help", None) or ""


def test_help_texts_are_in_plain_english() -> None:
    observed = {where: problems(text) for where, text in helps()}
    assert {where: texts for where, texts in observed.items() if texts} == {}


def riddles(docstring: str) -> list[str]:
    """The phrases of a docstring that hide who does what; long sentences may stay."""
    return [each for each in problems(docstring) if not each.startswith(("sentence", "paragraph"))]


@pytest.mark.parametrize("folder", ["demo", "pipelines", "schemas", "udfs"])
def test_docstrings_have_no_riddles(folder: str) -> None:
    observed = [
        f"{path.relative_to(ROOT)}:{node.body[0].lineno}: {riddle}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        for riddle in riddles(ast.get_docstring(node) or "")
    ]
    assert observed == []


@cases(
    ("page", "expected"),
    ("a riddle", "The rack is told by nobody.", 1),
    ("code", "The column `told_rack` is null.", 0),
    ("a row", "| a | it stands |\n", 1),
    ("output", "```text\nit is told\n```\n", 0),
    ("an opening", "A list.\n\n- Of it nothing.\n", 1),
    ("a long sentence", " ".join(["word"] * 36), 1),
    ("two short", " ".join(["word"] * 20) + ". " + " ".join(["Word"] * 20), 0),
    ("a long paragraph", "A line.\n" * 9, 1),
    ("an indented block", "Code.\n\n" + "    told\n" * 9, 0),
    ("a list", "- An item.\n" * 9, 0),
    ("a table", "| cell |\n" * 9, 0),
)
def test_a_planted_problem_is_counted(page: str, expected: int) -> None:
    assert len(problems(page)) == expected
