"""What every release left behind is taken over by this program, or refused by name."""

import json
from pathlib import Path

import pytest

from quotaflow.schemas import ddl, migrations
from quotaflow.schemas.migrations import SCHEMA_VERSION_PROPERTY, SchemaVersionError, Step
from quotaflow.schemas.tables.catalog import TABLES

from ..cases import cases

RELEASED = {
    file.stem: json.loads(file.read_text(encoding="utf-8"))
    for file in sorted((Path(__file__).parents[1] / "golden" / "released").glob("*.json"))
}
TABLES_OF_RELEASES = [
    (release, name) for release in RELEASED for name in RELEASED[release]["tables"]
]


@pytest.mark.parametrize(("release", "name"), TABLES_OF_RELEASES)
def test_a_released_table_needs_no_more_than_columns_or_has_a_step(release: str, name: str) -> None:
    """A column may be added; whatever else is changed needs a version and a step.

    While that release is not out yet, run tests/golden/released/make.py instead.
    """
    was, version = RELEASED[release]["tables"][name], RELEASED[release]["schema_version"]
    steps = migrations.due(name, version, migrations.STEPS, migrations.SCHEMA_VERSION)
    table = TABLES[name]
    live: dict[str, str] = {
        column: text.lower().replace(": ", ":") for column, text in was["columns"].items()
    }
    pairs = dict(pair for step in steps for pair in step.renames)
    renamed = {old: new for old, new in pairs.items() if "." not in old}
    assert all(ddl.renamed(name, [pair], live) for pair in pairs.items())
    assert not renamed.keys() & set(table.column_names), "an old name is declared again"
    for old, new in renamed.items():
        live[new] = live.pop(old)
    ddl.difference(table, name, live)
    assert live.keys() <= set(table.column_names), "a column went"
    assert list(table.partitioning) == was["partitioning"]
    assert list(table.clustering) == was["clustering"]


def test_the_versions_of_releases_and_steps_are_known() -> None:
    assert RELEASED
    assert all(was["schema_version"] <= migrations.SCHEMA_VERSION for was in RELEASED.values())
    assert all(1 < step.version <= migrations.SCHEMA_VERSION for step in migrations.STEPS)
    assert all(step.table in TABLES for step in migrations.STEPS)


STEPS = (
    Step(3, "a", fill=("third",)),
    Step(2, "a", alter=("second",)),
    Step(3, "b", instead="quotaflow rebuild b --from 30d"),
)


@cases(
    ("table", "version", "expected"),
    ("in order", "a", 1, [2, 3]),
    ("from where it is", "a", 2, [3]),
    ("none twice", "a", 3, []),
    ("made since", "b", 3, []),
    ("nothing changed in it", "c", 1, []),
)
def test_steps_lead_from_a_version_to_the_newest(
    table: str, version: int, expected: list[int]
) -> None:
    assert [step.version for step in migrations.due(table, version, STEPS, 3)] == expected


@cases(
    ("table", "version", "message"),
    ("newer", "a", 4, "newer quotaflow.*version 4.*up to 3.*upgrade quotaflow"),
    ("no way on", "b", 2, "b is of schema version 2.*quotaflow rebuild b"),
)
def test_what_cannot_be_brought_up_to_date_is_refused_by_name(
    table: str, version: int, message: str
) -> None:
    with pytest.raises(SchemaVersionError, match=message):
        migrations.due(table, version, STEPS, 3)


@cases(
    ("properties", "expected"),
    ("the first", {}, "settings is of schema version 1.*`quotaflow upkeep`"),
    (
        "newer",
        {SCHEMA_VERSION_PROPERTY: str(migrations.SCHEMA_VERSION + 1)},
        "settings was written by a newer quotaflow",
    ),
)
def test_a_table_that_a_step_has_yet_to_change_is_not_read(
    properties: dict[str, str], expected: str
) -> None:
    with pytest.raises(SchemaVersionError, match=expected):
        migrations.check_readable("settings", properties)


def test_a_table_without_a_step_is_read_whatever_older_version_it_has() -> None:
    migrations.check_readable("requests", {})
