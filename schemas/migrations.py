"""Versions of the tables' schema, and the steps from each to the next: forward only.

A column that a live table lacks, or a field of a list of structs, is added without a step. Any
other change of a table needs a new version and a step here.

Delta renames no column of a table without column mapping, which not every reader understands. So a
rename adds the new column and copies the values. The old column stays in the table. No release
from then on declares, reads or writes it: new rows have null there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SCHEMA_VERSION = 1
"""Version of the tables as they are declared. 1: release 0.1.0."""
SCHEMA_VERSION_PROPERTY = "quotaflow.schema_version"
"""Property of a table that has its version; a table without it is of the first."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a version changes in one table, beyond columns that are added.

    `alter` is SQL that runs before columns are added. `renames` has pairs of an old column and a
    new one: the old values are copied where the new column is null. A field of a list of structs
    is named `column.field`. `fill` is SQL that runs last. In SQL {target} is the table. Each part
    must have the same result when it runs twice. With `instead`, a command, a table with older rows
    is refused.
    """

    version: int
    table: str
    alter: tuple[str, ...] = ()
    renames: tuple[tuple[str, str], ...] = ()
    fill: tuple[str, ...] = ()
    instead: str | None = None


STEPS: tuple[Step, ...] = ()


class SchemaVersionError(ValueError):
    """A live table whose version does not fit this program."""


def version(properties: Mapping[str, str]) -> int:
    """The schema version that a table's properties name."""
    return int(properties.get(SCHEMA_VERSION_PROPERTY, "1"))


def due(table: str, live_version: int, steps: Iterable[Step], newest: int) -> list[Step]:
    """The steps that bring a table from a version up to the newest, in order.

    Raises SchemaVersionError for a table of a newer program, or one that no step leads on from.
    """
    if live_version > newest:
        raise SchemaVersionError(
            f"{table} was written by a newer quotaflow: it is of schema version {live_version}, "
            f"and this one knows up to {newest}: upgrade quotaflow"
        )
    pending = [step for step in steps if step.table == table and step.version > live_version]
    for step in pending:
        if step.instead:
            raise SchemaVersionError(
                f"{table} is of schema version {live_version}, and its rows cannot be brought to "
                f"{step.version}: {step.instead}"
            )
    return sorted(pending, key=lambda step: step.version)


def check_readable(table: str, properties: Mapping[str, str]) -> None:
    """Raise SchemaVersionError where a read would miss columns or values that a step renames."""
    live = version(properties)
    if due(table, live, STEPS, SCHEMA_VERSION):
        raise SchemaVersionError(
            f"{table} is of schema version {live}, and this quotaflow reads version "
            f"{SCHEMA_VERSION}: bring the tables up to date with `quotaflow upkeep`"
        )
