"""What a SQL view is, and how the head of its file is read.

A file of schemas/views begins with a head, in SQL comments of a fixed form. One query follows:

    -- kind: staging
    -- grain: one row per broker
    -- needs: admin_api
    -- description: The state of each broker in the last snapshot.
    -- empty: until the first snapshot
    -- columns:
    --   from broker_history: cluster_id, broker_id
    --   uptime_s: time since the broker registered,
    --     in seconds

`needs` is the level of schemas/levels.py from which on it has rows; tables of higher levels may be
missing. Columns stand in the order of the query. `from` takes the comments of columns that pass
through unchanged from a table or view that the query reads. `empty` is for a view that is rightly
without rows where all goes well: it says when. A longer text goes on in lines that are indented
further.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from quotaflow.schemas.levels import IN_WORDS, LEVELS

KINDS = ("staging", "intermediate", "mart")
"""staging selects, renames or deduplicates one source; a mart answers a question of users; an
intermediate view is read by other views."""

_FIELDS = ("kind", "grain", "needs", "description", "empty", "columns")
_OPTIONAL = "empty"
_FIELD = re.compile(r"(\w+):(?: (.*))?")
_COLUMN = re.compile(r"(\w+): (\S.*)")
_INHERITED = re.compile(r"from (\w+): (\S.*)")
_NEAR = 0.6


class ViewHeadError(ValueError):
    """The head of a view's file has not the form that this module's docstring shows."""


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """One column of a view: its name, and its meaning with its unit."""

    name: str
    comment: str


@dataclass(frozen=True, slots=True)
class View:
    """A view: what its head says, and its query in Spark's SQL.

    `columns` has all columns, in the order of the query; `folder` is the last one of its file.
    """

    name: str
    kind: str
    grain: str
    description: str
    columns: tuple[ViewColumn, ...]
    sql: str
    needs: str
    empty: str = ""
    folder: str = ""

    @property
    def comment(self) -> str:
        """What a row is, what the view is for, what it needs, and when it has no rows."""
        text = f"{self.grain[0].upper()}{self.grain[1:]}. {self.description}"
        text += f" Needs {IN_WORDS[self.needs]}."
        return f"{text} Empty {self.empty}." if self.empty else text


def split(text: str) -> tuple[list[str], str]:
    """The lines of the head, without their dashes, and the query, without any comment."""
    lines = text.splitlines()
    head = []
    for line in lines:
        if not line.startswith("--"):
            break
        head.append(line.removeprefix("--").removeprefix(" ").rstrip())
    # What a comment names is not read.
    query = "\n".join(line for line in lines if not line.lstrip().startswith("--"))
    return head, query.strip()


def parse(name: str, head: list[str], sql: str, described: Mapping[str, Mapping[str, str]]) -> View:
    """The view of a file that `split` has divided.

    `described` has the comment of each column of the tables and views that the query reads.
    Raises ViewHeadError.
    """
    try:
        fields = _fields(head)
        return View(
            name=name,
            kind=_kind(fields["kind"]),
            grain=_grain(fields["grain"]),
            description=_description(fields["description"]),
            columns=tuple(_columns(fields["columns"], described)),
            sql=sql,
            needs=_needs(fields["needs"]),
            empty=_text(fields.get(_OPTIONAL, [])),
        )
    except ViewHeadError as error:
        raise ViewHeadError(f"view {name}: {error}") from None


def _fields(head: list[str]) -> dict[str, list[str]]:
    """The lines of each field: what follows its name, then those indented below it."""
    fields: dict[str, list[str]] = {}
    for line in head:
        if line.startswith("  "):
            if not fields:
                raise ViewHeadError(f"the head begins with an indented line: {line.strip()}")
            list(fields.values())[-1].append(line)
            continue
        match = _FIELD.fullmatch(line)
        if not match or match[1] not in _FIELDS:
            raise ViewHeadError(
                f"expected a field ({', '.join(_FIELDS)}) or a line indented by two spaces, "
                f"got: {line}"
            )
        if match[1] in fields:
            raise ViewHeadError(f"the head has {match[1]} twice")
        fields[match[1]] = [match[2] or ""]
    if missing := [field for field in _FIELDS if field not in {*fields, _OPTIONAL}]:
        raise ViewHeadError(f"the head has no {missing[0]}")
    if list(fields) != [field for field in _FIELDS if field in fields]:
        raise ViewHeadError(f"fields are in this order: {', '.join(_FIELDS)}")
    return fields


def _kind(lines: list[str]) -> str:
    kind = _text(lines)
    if kind not in KINDS:
        raise ViewHeadError(f"kind {kind!r} is none of {', '.join(KINDS)}{_near(kind, KINDS)}")
    return kind


def _needs(lines: list[str]) -> str:
    needs = _text(lines)
    if needs not in LEVELS:
        raise ViewHeadError(f"needs {needs!r} is none of {', '.join(LEVELS)}{_near(needs, LEVELS)}")
    return needs


def _grain(lines: list[str]) -> str:
    grain = _text(lines)
    if not grain.startswith("one row per ") or grain.endswith("."):
        raise ViewHeadError(f"grain is 'one row per ...' without a full stop, got {grain!r}")
    return grain


def _description(lines: list[str]) -> str:
    description = _text(lines)
    if not description.endswith("."):
        raise ViewHeadError(f"description is one or more sentences, got {description!r}")
    return description


def _columns(lines: list[str], described: Mapping[str, Mapping[str, str]]) -> Iterator[ViewColumn]:
    seen = set()
    for column in _each_column(lines, described):
        if column.name in seen:
            raise ViewHeadError(f"column {column.name} is described twice")
        seen.add(column.name)
        yield column
    if not seen:
        raise ViewHeadError("columns is empty: describe every column of the query")


def _each_column(
    lines: list[str], described: Mapping[str, Mapping[str, str]]
) -> Iterator[ViewColumn]:
    for entry in _entries(lines):
        if inherited := _INHERITED.fullmatch(entry):
            yield from _inherited(inherited[1], inherited[2].split(","), described)
        elif column := _COLUMN.fullmatch(entry):
            yield ViewColumn(column[1], column[2])
        else:
            raise ViewHeadError(
                f"expected 'column: meaning' or 'from table: columns', got: {entry}"
            )


def _entries(lines: list[str]) -> Iterator[str]:
    """Each line indented by two spaces, joined with those below it that are indented further."""
    first, *rest = lines
    if first:
        raise ViewHeadError(f"columns begin in the line below, got: {first}")
    entry: list[str] = []
    for line in rest:
        if not line.startswith("    "):
            if entry:
                yield _text(entry)
            entry = []
        entry.append(line)
    if entry:
        yield _text(entry)


def _inherited(
    source: str, names: Iterable[str], described: Mapping[str, Mapping[str, str]]
) -> Iterator[ViewColumn]:
    if source not in described:
        raise ViewHeadError(f"the query does not read {source}{_near(source, described)}")
    columns = described[source]
    for name in map(str.strip, names):
        if name not in columns:
            raise ViewHeadError(f"{source} describes no column {name!r}{_near(name, columns)}")
        yield ViewColumn(name, columns[name])


def _near(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=_NEAR)
    return f" (did you mean {near[0]}?)" if near else ""


def _text(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines if line.strip())
