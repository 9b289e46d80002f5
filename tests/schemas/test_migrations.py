"""Steps between versions of the tables: what is due, and what is refused by name."""

import pytest

from quotaflow.schemas import migrations
from quotaflow.schemas.migrations import SCHEMA_VERSION_PROPERTY, SchemaVersionError, Step

from ..cases import cases

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
    ("the first", {}, "a is of schema version 1.*`quotaflow upkeep`"),
    ("newer", {SCHEMA_VERSION_PROPERTY: "4"}, "a was written by a newer quotaflow"),
)
def test_a_table_that_a_step_has_yet_to_change_is_not_read(
    properties: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "STEPS", STEPS)
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", 3)
    migrations.check_readable("c", {})
    with pytest.raises(SchemaVersionError, match=expected):
        migrations.check_readable("a", properties)
