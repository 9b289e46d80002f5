"""How a code and its evidence become a sentence: names are cut and escaped."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.terminal.values import visible
from quotaflow.udfs.counted import noun

MAX_NAME_CHARS = 100
"""Longer names in a sentence are cut."""


UNKNOWN = "?"


Row = Mapping[str, Any]
"""A row of the view that has the code."""


Words = Callable[[Row], str]


@dataclass(frozen=True, slots=True)
class Wording:
    """What one code means, which columns of its row are the evidence, and how they are worded."""

    code: str
    meaning: str
    evidence: tuple[str, ...]
    words: Words


def worded(wordings: Mapping[str, Wording], code: str, row: Row) -> str:
    wording = wordings.get(code)
    return cut(code) if wording is None else wording.words(row)


def cut(text: object) -> str:
    shown = visible(str(text)[:MAX_NAME_CHARS])
    return shown if len(shown) <= MAX_NAME_CHARS else shown[: MAX_NAME_CHARS - 1] + "…"


def name(row: Row, column: str, unknown: str = UNKNOWN) -> str:
    return unknown if row[column] is None else cut(row[column])


def with_topic(row: Row) -> Row:
    """The row with the id of its topic in place of a name that nothing has yet."""
    return {**row, "topic": row.get("topic") or row.get("unnamed_topic_id")}


def number(row: Row, column: str, decimals: int = 0, scale: float = 1) -> str:
    return UNKNOWN if row[column] is None else texts.fixed(row[column] / scale, decimals)


def size(row: Row, column: str) -> str:
    return UNKNOWN if row[column] is None else texts.size(row[column])


def rate(row: Row, column: str) -> str:
    return UNKNOWN if row[column] is None else texts.rate(row[column])


def numbered(row: Row, column: str, one: str, many: str | None = None) -> str:
    """A whole number of the row with its noun; ? with the plural if it is not known."""
    shown = number(row, column)
    return f"{shown} {noun(shown, one, many)}"


def fixed(text: str) -> Words:
    return lambda _: text


def by_code(wordings: Iterable[Wording]) -> Mapping[str, Wording]:
    return {wording.code: wording for wording in wordings}
