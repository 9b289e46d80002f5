"""A question to the tables: SQL that each surface fills in with its cluster, time and name.

In the SQL stand in braces: `of_cluster`; `within:time` or `within:first:last` for rows of the
surface's time, and `in_day` instead where a name is asked about the last day; `is_client`,
`is_topic` and so on for rows of a name (scope.py), true without one; `without_log`; `limit`; and
literals such as `cluster`, `since` and `day`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quotaflow.pipelines.warehouse.sql_literals import literal

_PART = re.compile(r"\{(\w+)(?::(\w+))?(?::(\w+))?\}")
WITHIN, IN_DAY = "within", "in_day"
"""Conditions on times."""

NO_NAME: dict[str, str] = dict.fromkeys(
    (
        *(
            "is_client",
            "is_program",
            "is_principal",
            "is_user",
            "is_entity_user",
            "is_entity_client",
        ),
        *("is_client_id", "is_entity_ip", "is_ip", "is_address", "is_group", "is_topic"),
        *("is_named_topic", "is_entity_topic", "is_named_broker", "is_entity_broker"),
        "is_move_of_broker",
        *("is_own_broker", "is_own_group"),
    ),
    "true",
)
"""What stands for the conditions of a name where none is asked about."""
Row = dict[str, Any]

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
        """SQL of the first rows."""
        return f"SELECT * FROM ({self.sql}) AS every_row {self._first}"

    @property
    def counted_rows(self) -> str:
        """SQL of the first rows, with the number of all in OF_ALL."""
        return (
            f"SELECT *, count(*) OVER () AS {OF_ALL} FROM ({self.sql}) AS every_row {self._first}"
        )

    @property
    def _first(self) -> str:
        return f"ORDER BY {self.order} LIMIT {{limit}}"

    def select(self, columns: Sequence[str]) -> str:
        """SQL of these columns of the first rows."""
        names = ", ".join(columns)
        return f"\nSELECT {names}\nFROM ({self.sql.strip()}) AS every_row\n{self._first}\n"

    def where(self, condition: str) -> "Question":
        """The rows for which a condition is true."""
        return Question(f"SELECT * FROM ({self.sql}) AS every_row WHERE {condition}", self.order)


def everywhere(sql: str) -> str:
    """The SQL about every cluster and all time."""
    return filled(sql, NO_NAME | {"of_cluster": "true"}, lambda *_: "true")


def filled(
    sql: str, parts: Mapping[str, str], within: Callable[[str, str, str], str] | None = None
) -> str:
    """The SQL with every part in its place.

    `within` makes a condition of WITHIN or IN_DAY and two columns of times. All are replaced in one
    pass, so that no literal is read again. Other braces stay.
    """

    def part(place: re.Match[str]) -> str:
        name, first, last = place.groups()
        if first and within is not None and name in {WITHIN, IN_DAY}:
            return within(name, first, last or first)
        return place[0] if first else parts.get(name, place[0])

    return _PART.sub(part, sql)


def undiagnosed(cause: str) -> str:
    """The SQL condition that no diagnosis names the client of `every_row`, for this cause.

    A client id of a diagnosis may end with a `*`: it is one of several of a program.
    """
    program = "split_part(diagnoses.client_id, '*', 1)"
    return (
        "NOT EXISTS (SELECT 1 FROM diagnoses WHERE diagnoses.cluster_id = every_row.cluster_id "
        f"AND diagnoses.principal = every_row.principal AND diagnoses.cause = {literal(cause)} "
        "AND (diagnoses.client_id IS NOT DISTINCT FROM every_row.client_id "
        f"OR (diagnoses.client_id LIKE '_%*%' AND left(every_row.client_id, length({program})) = "
        f"{program})) AND {{within:since:until}})"
    )


def any_of(column: str, names: Sequence[str | int]) -> str:
    """The SQL condition that a column is one of the values."""
    return f"{column} IN ({', '.join(map(literal, names))})" if names else "false"


def of_users(table: str) -> str:
    """A condition on rows of `table`: their login is not one of brokers or of this pipeline.

    By principal alone, because a client chooses its client id.
    """
    return f"""NOT EXISTS (
    SELECT 1 FROM protected_principals AS internal
    WHERE internal.is_internal AND internal.cluster_id = {table}.cluster_id
        AND internal.principal = {table}.principal
)"""
