"""How the head of a SQL file is read: fields in comments of a fixed form.

    -- field: a text, which may go on
    --   in lines that are indented further
    -- columns:
    --   from traffic: cluster_id, topic
    --   share DOUBLE: its part of all bytes,
    --     0 to 1

The head ends at the first line that is no comment. Entries of a field stand one below the other,
indented by two spaces. `from` takes columns that pass through unchanged from what the query reads.
Only tables have types; they stand as Spark SQL has them.
"""

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Protocol, TypeVar

_FIELD = re.compile(r"(\w+):(?: (.*))?")
_INHERITED = re.compile(r"from (\w+): (\S.*)")
_QUESTION = re.compile(r"[A-Z][^.?]*\. [A-Z].*\?")
# At the start of a line. An expression that begins with letters is found sooner than one with ^.
_STAR = re.compile(r"SELECT(?<![^\n]SELECT)\s+(\w+\.)?\*(?:,(.*?)\n| )FROM (\w*)", re.S)
_COMMENT_OR_TEXT = re.compile(r"--[^\n]*|'(?:[^']|'')*'")
_BRACKETS = re.compile(r"\([^()]*\)")
_NEAR = 0.6

Fields = Mapping[str, list[str]]
"""The lines of each field: what follows its name, then those indented below it."""


class Named(Protocol):
    """A thing that its name identifies."""

    @property
    def name(self) -> str:
        """The name."""
        ...


AnyColumn = TypeVar("AnyColumn", bound=Named)


class HeadError(ValueError):
    """The head of a SQL file has not the form that this module's docstring shows."""


def split(text: str) -> tuple[list[str], str]:
    """The lines of the head, without their dashes, and what follows it."""
    end = 0
    while text.startswith("--", end):
        end = text.find("\n", end) + 1 or len(text)
    lines = text[:end].splitlines()
    head = [line.removeprefix("--").removeprefix(" ").rstrip() for line in lines]
    return head, text[end:].strip()


def without_comments(sql: str) -> str:
    """A query without lines that are comments: what these name is not read."""
    if "--" not in sql:
        return sql.strip()
    lines = [line for line in sql.splitlines() if not line.lstrip().startswith("--")]
    return "\n".join(lines).strip()


def without_star(
    sql: str,
    names: Collection[str],
    described: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> str:
    """A query where the `*` or `table.*` of a SELECT at the start of a line is written out.

    It is the columns of these names, in their order; those that the SELECT makes take their places.
    In a UNION, one that the table or view behind FROM lacks, by `described`, is null.
    A `*` of SQL has also columns of a table that nobody declares any more, and in another order.
    """

    is_union = "\nUNION ALL\n" in sql

    def written_out(match: re.Match[str]) -> str:
        table, others = match[1] or "", items(match[2] or "")
        has = described.get(match[3], names) if is_union else names
        taken = {name: f"{table}{name}" if name in has else f"NULL AS {name}" for name in names}
        listed = ",\n    ".join({**taken, **others}[name] for name in names)
        return f"SELECT\n    {listed}\nFROM {match[3]}"

    return _STAR.sub(written_out, sql)


def items(listed: str) -> Mapping[str, str]:
    """Each item of a SELECT by the name of its column."""
    flat = _COMMENT_OR_TEXT.sub(_masked, listed)
    while (flatter := _BRACKETS.sub(_masked, flat)) != flat:
        flat = flatter
    read: dict[str, str] = {}
    start = 0
    for item in flat.split(",") if flat.strip() else ():
        read[re.findall(r"\w+", item)[-1]] = listed[start : start + len(item)].strip()
        start += len(item) + 1
    return read


def _masked(match: re.Match[str]) -> str:
    return " " * len(match[0])


def fields(head: Iterable[str], names: Collection[str], optional: Collection[str]) -> Fields:
    """The fields of a head, which are in the order of `names`. Raises HeadError."""
    read: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in head:
        if line.startswith("  "):
            if not read:
                raise HeadError(f"the head begins with an indented line: {line.strip()}")
            lines.append(line)
            continue
        match = _FIELD.fullmatch(line)
        if not match or match[1] not in names:
            raise HeadError(
                f"expected a field ({', '.join(names)}) or a line indented by two spaces, "
                f"got: {line}"
            )
        if match[1] in read:
            raise HeadError(f"the head has {match[1]} twice")
        lines = read[match[1]] = [match[2] or ""]
    if missing := [name for name in names if name not in read and name not in optional]:
        raise HeadError(f"the head has no {missing[0]}")
    if list(read) != [name for name in names if name in read]:
        raise HeadError(f"fields are in this order: {', '.join(names)}")
    return read


def one_of(field: str, lines: list[str], choices: Collection[str]) -> str:
    """A field that has one of these words. Raises HeadError."""
    word = text(lines)
    if word not in choices:
        raise HeadError(f"{field} {word!r} is none of {', '.join(choices)}{near(word, choices)}")
    return word


def grain(lines: list[str]) -> str:
    """What a row is. Raises HeadError."""
    read = text(lines)
    if not read.startswith("one row per ") or read.endswith("."):
        raise HeadError(f"grain is 'one row per ...' without a full stop, got {read!r}")
    return read


def description(lines: list[str]) -> str:
    """One or more sentences. Raises HeadError."""
    read = text(lines)
    if not read.endswith("."):
        raise HeadError(f"description is one or more sentences, got {read!r}")
    return read


def question(lines: list[str]) -> str:
    """A label and the question that rows answer, if people ask it. Raises HeadError."""
    read = text(lines)
    if read and not _QUESTION.fullmatch(read):
        raise HeadError(f"question is 'Label. Question?', got {read!r}")
    return read


def names(lines: list[str]) -> tuple[str, ...]:
    """Names that commas divide."""
    return tuple(name.strip() for name in text(lines).split(",") if name.strip())


def first(lines: list[str], described: Iterable[Named]) -> tuple[str, ...]:
    """The columns whose largest values a list of rows begins with. Raises HeadError."""
    read, columns_there = names(lines), [column.name for column in described]
    if wrong := [name for name in read if name not in columns_there]:
        raise HeadError(f"first: no column {wrong[0]}{near(wrong[0], columns_there)}")
    return read


def columns(
    lines: list[str],
    described: Mapping[str, Mapping[str, AnyColumn]],
    own: Callable[[str], AnyColumn],
) -> tuple[AnyColumn, ...]:
    """The described columns, in their order. `described` has those of what the query reads.

    `own` reads an entry that is no `from`. Raises HeadError, and what `own` raises.
    """
    read: dict[str, AnyColumn] = {}
    for column in _each_column(lines, described, own):
        if column.name in read:
            raise HeadError(f"column {column.name} is described twice")
        read[column.name] = column
    if not read:
        raise HeadError("columns is empty: describe every column of the query")
    return tuple(read.values())


def _each_column(
    lines: list[str],
    described: Mapping[str, Mapping[str, AnyColumn]],
    own: Callable[[str], AnyColumn],
) -> Iterator[AnyColumn]:
    for entry in entries("columns", lines):
        if inherited := _INHERITED.fullmatch(entry):
            yield from _inherited(inherited[1], inherited[2].split(","), described)
        else:
            yield own(entry)


def _inherited(
    source: str, names: Iterable[str], described: Mapping[str, Mapping[str, AnyColumn]]
) -> Iterator[AnyColumn]:
    if source not in described:
        raise HeadError(f"the query does not read {source}{near(source, described)}")
    for name in map(str.strip, names):
        if name not in described[source]:
            likely = near(name, described[source])
            raise HeadError(f"{source} describes no column {name!r}{likely}")
        yield described[source][name]


def entries(field: str, lines: list[str]) -> Iterator[str]:
    """Each line indented by two spaces, joined with those below it that are indented further."""
    first, *rest = lines
    if first:
        raise HeadError(f"{field} begin in the line below, got: {first}")
    entry: list[str] = []
    for line in rest:
        if not line.startswith("    "):
            if entry:
                yield text(entry)
            entry = []
        entry.append(line)
    if entry:
        yield text(entry)


def near(name: str, names: Iterable[str]) -> str:
    """A question that names the nearest of some names, for the end of an error."""
    likely = difflib.get_close_matches(name, list(names), n=1, cutoff=_NEAR)
    return f" (did you mean {likely[0]}?)" if likely else ""


def text(lines: list[str]) -> str:
    """The lines of a field as one."""
    return " ".join(filter(None, map(str.strip, lines)))
