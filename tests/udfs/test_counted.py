"""Numbers with their nouns: one is no plural, and no sentence has a plural of its own."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from quotaflow.udfs.counted import counted, noun

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "pipelines").rglob("*.py"), *(ROOT / "udfs" / "rules").glob("*.py")])
NO_NOUN = re.compile(
    # Verbs after a name.
    "begins|crossed|does|ends|finds|gets|gives|had|has|holds|is|lacks|lets|loads|locks|manages"
    "|matches|names|needs|reads|rests|runs|says|shows|switches|takes|took|waits|was|writes"
    # Units.
    "|bytes|days|ms|s|seconds|us"
    # What another part of the sentence begins with.
    "|after|an?|and|as|at|be|before|by|cannot|can|for|from|if|instead|in|its?|must|not?|of|on|or|over"
    "|per|such|than|that|there|the|this|to|under|until|which|without|with"
)
PLURAL_VERB = re.compile("are|do|fail|fit|have|need|take|wait|were")
COUNTING = {"counted", "noun", "numbered"}
TEXTS = {"name", "names", "client_text", "join", "quote", "size"}
"""Functions that give a text."""
WORD = re.compile(r" ([a-zA-Z][\w.-]*)(/?)")
HAS_DECIMALS = re.compile(r"\.[1-9]|%")
HAS_DECIMALS_TOO = re.compile(r"number\(.*, [1-9](, [^)]*)?\)")
MORE_THAN_S = re.compile(r"(ch|sh|s|x|z|[^aeiou]y)$")
CONSTANT = re.compile(r"[A-Z_]+")


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 brokers"), (1, "1 broker"), (1_200, "1,200 brokers")]
)
def test_one_is_no_plural(number: int, text: str) -> None:
    assert counted(number, "broker") == text


def test_a_verb_goes_with_its_noun() -> None:
    words = ("change waits", "changes wait")
    assert [counted(n, *words) for n in (1, 2)] == ["1 change waits", "2 changes wait"]
    assert [noun(text, *words) for text in ("1", "?", "1.0")] == [words[0], words[1], words[1]]


def test_no_sentence_has_a_plural_of_its_own() -> None:
    wrong = {
        str(path.relative_to(ROOT)): plurals
        for path in FILES
        if (plurals := [*own_plurals(text := path.read_text("utf-8")), *wrong_nouns(text)])
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        ("{n} rows written", True),
        ("{len(rows):,} new ids of it", True),
        ("{n} of {of_all} client ids", True),
        ("{counted(n, 'change')} wait", True),
        ("{counted(n, 'change')} written", False),
        ("{topic} has rows", False),
        ("{n:.1f} hours", False),
        ("{MOST} rows", False),
        ("{rate} records/s", False),
    ],
)
def test_plurals_are_found(text: str, is_wrong: bool) -> None:
    assert bool(list(own_plurals(f'words = f"{text}"'))) is is_wrong


def test_a_plural_with_more_than_an_s_is_given() -> None:
    assert list(wrong_nouns("counted(n, 'batch')")) == ["counted(n, 'batch')"]
    assert list(wrong_nouns("counted(n, 'batch', 'batches') + counted(n, 'day')")) == []


def own_plurals(source: str) -> Iterator[str]:
    """Numbers in f-strings with a plural after them, and counted nouns with a plural's verb."""
    for node in ast.walk(ast.parse(source)):
        for value, after in pairwise(node.values if isinstance(node, ast.JoinedStr) else []):
            if isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant):
                words = list(words_of(str(after.value)))
                is_wrong = (
                    any(map(PLURAL_VERB.fullmatch, words[:1]))
                    if called(value.value) in COUNTING
                    else may_be_one(value) and any(map(is_plural, words))
                )
                if is_wrong:
                    yield f"{{{ast.unparse(value.value)}}}{after.value!s}"


def wrong_nouns(source: str) -> Iterator[str]:
    """Calls that put an s after a noun whose plural has more than that."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and called(node) in COUNTING:
            noun_at = 2 if called(node) == "numbered" else 1
            one = node.args[noun_at] if len(node.args) == noun_at + 1 else None
            if isinstance(one, ast.Constant) and MORE_THAN_S.search(str(one.value)):
                yield ast.unparse(node)


def words_of(text: str) -> Iterator[str]:
    """The first three words, up to one that begins another part of the sentence."""
    at = 0
    for _ in range(3):
        match = WORD.match(text, at)
        if match is None or NO_NOUN.fullmatch(match[1]) or match[2]:
            return
        yield match[1]
        at = match.end(1)


def is_plural(word: str) -> bool:
    return word.endswith("s") and not word.endswith("ss")


def may_be_one(value: ast.FormattedValue) -> bool:
    """Whether it is neither a text nor a constant, and has no decimals."""
    spec = ast.unparse(value.format_spec) if value.format_spec else ""
    text = ast.unparse(value.value)
    has_decimals = HAS_DECIMALS.search(spec) or HAS_DECIMALS_TOO.fullmatch(text)
    return not (has_decimals or CONSTANT.fullmatch(text) or called(value.value) in TEXTS)


def called(expression: ast.expr) -> str:
    """The name of the function that the expression calls."""
    function = expression.func if isinstance(expression, ast.Call) else None
    return getattr(function, "attr", None) or getattr(function, "id", "")
