"""What a SQL view is, and how the head of its file is read (`schemas/head.py`).

A file of schemas/views begins with a head. One query follows:

    -- kind: staging
    -- grain: one row per broker
    -- area: cluster
    -- level: admin_api
    -- question: Brokers. Which brokers are there?
    -- description: The state of each broker in the last snapshot.
    -- empty: until the first snapshot
    -- columns:
    --   from broker_history: cluster_id, broker_id
    --   uptime_s: time since the broker registered,
    --     in seconds

`area` is one of schemas/areas.py. `level` is that of schemas/levels.py from which on it has rows;
tables of higher levels may be missing. `question` is a label and the question that rows answer; a
view without one serves others. Columns stand in the order of the query. `empty` is for a view that
is rightly without rows where all goes well: it says when. `history` names the facts and results of
which the view needs rows of any time. Of all others it needs the rows of the time that is asked
about, and some before it (pipelines/areas/scope.py). `first` names the columns whose largest values
lists of rows begin with: without it these are the newest rows. The `*` or `table.*` of a SELECT at
the start of a line is the columns of the head that this SELECT does not make itself: of a UNION
those that the table behind FROM lacks are null.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from quotaflow.schemas import head, programs
from quotaflow.schemas.areas import BY_NAME
from quotaflow.schemas.head import HeadError
from quotaflow.schemas.levels import IN_WORDS, LEVELS

KINDS = ("staging", "intermediate", "mart")
"""staging selects, renames or deduplicates one source; a mart answers a question of users; an
intermediate view is read by other views."""

_OPTIONAL = ("question", "empty", "history", "first")
_FIELDS = (
    *("kind", "grain", "area", "level", "question", "description", "empty", "history"),
    *("first", "columns"),
)
_COLUMN = re.compile(r"(\w+): (\S.*)")


class ViewColumn(NamedTuple):
    """One column of a view: its name, and its meaning with its unit."""

    name: str
    comment: str


@dataclass(frozen=True, slots=True)
class View:
    """A view: what its head says, and its query in Spark's SQL.

    `columns` has all columns, in the order of the query.
    """

    name: str
    kind: str
    grain: str
    area: str
    level: str
    description: str
    columns: tuple[ViewColumn, ...]
    sql: str
    empty: str = ""
    history: frozenset[str] = frozenset()
    question: str = ""
    first: tuple[str, ...] = ()

    @property
    def comment(self) -> str:
        """What a row is, what the view is for, what it needs, and when it has no rows."""
        text = f"{self.grain[0].upper()}{self.grain[1:]}. {self.description}"
        text += f" Needs {IN_WORDS[self.level]}."
        return f"{text} Empty {self.empty}." if self.empty else text


def parse(name: str, text: str, described: Mapping[str, Mapping[str, ViewColumn]]) -> View:
    """The view of a file.

    `described` has the columns of the tables and views that the query reads. Raises HeadError.
    """
    lines, sql = head.split(text)
    try:
        fields = head.fields(lines, _FIELDS, _OPTIONAL)
        columns = head.columns(fields["columns"], described, _column)
        names = [each.name for each in columns]
        sql = head.without_star(head.without_comments(sql), names, described)
        return View(
            name=name,
            kind=head.one_of("kind", fields["kind"], KINDS),
            grain=head.grain(fields["grain"]),
            area=head.one_of("area", fields["area"], BY_NAME),
            level=head.one_of("level", fields["level"], LEVELS),
            question=head.question(fields.get("question", [])),
            description=head.description(fields["description"]),
            empty=head.text(fields.get("empty", [])),
            history=_history(fields.get("history", []), described),
            first=head.first(fields.get("first", []), columns),
            columns=columns,
            sql=programs.expanded(sql),
        )
    except HeadError as error:
        raise HeadError(f"view {name}: {error}") from None


def _history(lines: list[str], described: Mapping[str, object]) -> frozenset[str]:
    names = [name for name in head.text(lines).split(", ") if name]
    if unread := [name for name in names if name not in described]:
        raise HeadError(f"history: the query does not read {unread[0]}")
    return frozenset(names)


def _column(entry: str) -> ViewColumn:
    column = _COLUMN.fullmatch(entry)
    if not column:
        raise HeadError(f"expected 'column: meaning' or 'from table: columns', got: {entry}")
    return ViewColumn(column[1], column[2])
