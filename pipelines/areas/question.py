"""A question to the tables: SQL that each surface fills in with its cluster, time and name.

In the SQL stand in braces: `of_cluster`; `within:time` or `within:first:last` for rows of the
surface's time; `is_client`, `is_topic` and so on for rows of a name (scope.py), true without one;
`limit`; and literals such as `cluster`, `since` and `day`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_PART = re.compile(r"\{(\w+)(?::(\w+))?(?::(\w+))?\}")
OF_ALL = "of_all"
"""The column of a question with the number of rows before its LIMIT."""


@dataclass(frozen=True, slots=True)
class Question:
    """Rows of an area, each with its cluster_id; by `order` the ones that matter most come first.

    `sql` has no order and no limit of its own: it is also counted, and filtered further.
    """

    sql: str
    order: str

    @property
    def first_rows(self) -> str:
        """SQL of the first rows, and the number of all in OF_ALL."""
        return (
            f"SELECT *, count(*) OVER () AS {OF_ALL} FROM ({self.sql}) AS every_row "
            f"ORDER BY {self.order} LIMIT {{limit}}"
        )


def filled(
    sql: str, parts: Mapping[str, str], within: Callable[[str, str], str] | None = None
) -> str:
    """The SQL with every part in its place; `within` makes a condition of two columns of times.

    All are replaced in one pass, so that no literal is read again. Other braces stay.
    """

    def part(place: re.Match[str]) -> str:
        name, first, last = place.groups()
        if name == "within" and within is not None:
            return within(first, last or first)
        return place[0] if first else parts.get(name, place[0])

    return _PART.sub(part, sql)
