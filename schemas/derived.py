"""What the heads of answers and results have in common: the table that a text fills.

    -- kind: answer
    -- grain: one row per user
    -- area: quotas
    -- level: sampled_log
    -- question: Quota use. How much of its quota does each user use?
    -- description: What each user uses.
    -- key: cluster_id, user
    -- time: until
    -- clustering: until, user
    -- columns:
    --   from quota_usage: cluster_id, user
    --   until TIMESTAMP: start of its last window

`first`, before `columns`, names the columns whose largest values `quotaflow show` lists first,
where these are not the newest. `question` is a label and the question that rows answer; tables
without one serve those that have one. The table's comment is the grain and the description. `{per}`
in the description is replaced by the grain. A result is partitioned and an answer clustered, as
Table says.
"""

import re
from collections.abc import Mapping
from datetime import timedelta

from quotaflow.schemas import head
from quotaflow.schemas.areas import BY_NAME
from quotaflow.schemas.head import Fields, HeadError
from quotaflow.schemas.levels import LEVELS
from quotaflow.schemas.table import Column, Table, typed

DESCRIBED = ("kind", "grain", "area", "level", "question", "description", "empty")
"""The first fields of a head."""
STORED = ("key", "time", "clustering", "partitioning", "first")
OPTIONAL = ("question", "empty", "clustering", "partitioning", "first")
_DECLARED = ("comment", "area", "level", "question", "empty", *STORED, "columns")

_COLUMN = re.compile(r"(\w+) ([A-Z].*)")
_ROWS = "one row "
_PER = "{per}"
_UNITS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}
_DURATION = re.compile(rf"(\d+) ({'|'.join(_UNITS)})")

Described = Mapping[str, Mapping[str, Column]]
"""The columns of the tables that a text reads, by table and name."""


def declared(name: str, text: str, described: Described) -> Table:
    """The table of a file that has its declaration alone. Raises HeadError."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    try:
        fields = head.fields(lines, _DECLARED, OPTIONAL)
        return _table(name, head.text(fields["comment"]), fields, described)
    except HeadError as error:
        raise HeadError(f"table {name}: {error}") from None


def table(name: str, fields: Fields, described: Described) -> Table:
    """The table that a text fills. Raises HeadError."""
    comment = _comment(head.grain(fields["grain"]), head.text(fields["description"]))
    return _table(name, comment, fields, described)


def _table(name: str, comment: str, fields: Fields, described: Described) -> Table:
    columns = head.columns(fields["columns"], described, _column)
    return Table(
        name=name,
        comment=comment,
        columns=columns,
        first=head.first(fields.get("first", []), columns),
        key=head.names(fields["key"]),
        time=head.text(fields["time"]),
        clustering=head.names(fields.get("clustering", [])),
        partitioning=head.names(fields.get("partitioning", [])),
        empty=head.text(fields.get("empty", [])),
        area=head.one_of("area", fields["area"], BY_NAME),
        level=head.one_of("level", fields["level"], LEVELS),
        question=head.question(fields.get("question", [])),
    )


def duration(text: str) -> timedelta:
    """A time such as `60 s`, `10 min`, `1 h` or `7 d`. Raises HeadError."""
    match = _DURATION.fullmatch(text)
    if not match:
        raise HeadError(f"expected a number and one of {', '.join(_UNITS)}, got: {text}")
    return timedelta(seconds=int(match[1]) * _UNITS[match[2]])


def _comment(grain: str, description: str) -> str:
    if _PER in description:
        return description.replace(_PER, grain.removeprefix(_ROWS))
    return f"{grain[0].upper()}{grain[1:]}. {description}".rstrip()


def _column(entry: str) -> Column:
    column = _COLUMN.fullmatch(entry)
    if not column:
        raise HeadError(f"expected 'column TYPE: meaning' or 'from table: columns', got: {entry}")
    try:
        kind, meaning = typed(column[2])
    except ValueError as error:
        raise HeadError(f"column {column[1]}: {error}") from None
    if not meaning.startswith(": "):
        raise HeadError(f"expected 'column TYPE: meaning', got: {entry}")
    return Column(column[1], kind, meaning.removeprefix(": "))
