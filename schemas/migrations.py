"""Versions of the tables' schema, and the steps from each to the next: forward only.

Columns that a table lacks are added without a step. What else changes in a table that is there gets
a new version and a step here; tests hold every released schema, with data, against that.
"""

from collections.abc import Iterable
from dataclasses import dataclass

SCHEMA_VERSION = 1
"""Of the tables as they are declared. 1: released as 0.1.0."""
SCHEMA_VERSION_PROPERTY = "quotaflow.schema_version"
"""Property of a table that says which version it is of; without it, of the first."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a version changes in one table, beyond columns that are added.

    `alter` is SQL that runs before columns are added, `fill` after; {target} is the table, and both
    must bear to run twice. With `instead`, a command, a table with older rows is refused.
    """

    version: int
    table: str
    alter: tuple[str, ...] = ()
    fill: tuple[str, ...] = ()
    instead: str | None = None


STEPS: tuple[Step, ...] = ()


class SchemaVersionError(ValueError):
    """A live table that this program cannot write to."""


def due(table: str, live_version: int, steps: Iterable[Step], newest: int) -> list[Step]:
    """The steps that bring a table from a version up to the newest, in order.

    Raises SchemaVersionError for a table of a newer program, or one that no step leads on from.
    """
    if live_version > newest:
        raise SchemaVersionError(
            f"{table} was written by a newer quotaflow: it is of schema version {live_version}, "
            f"and this one knows up to {newest}: upgrade quotaflow"
        )
    found = [step for step in steps if step.table == table and step.version > live_version]
    for step in found:
        if step.instead:
            raise SchemaVersionError(
                f"{table} is of schema version {live_version}, and its rows cannot be brought to "
                f"{step.version}: {step.instead}"
            )
    return sorted(found, key=lambda step: step.version)
