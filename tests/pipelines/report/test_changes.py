"""The report's section on changes: owned configs, leases that are over, open changes."""

from typing import Any

from quotaflow.pipelines.areas.finding import NOW, SOON
from quotaflow.pipelines.report import changes
from quotaflow.pipelines.report.section import ReportSection
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import CONFIG_CHANGES

from ...rows import Row, at, row
from ...schemas.views.view_tables import make_table
from .pages import scope

HOUR_S = 3_600


def step(second: float, step: str, change: str = "a", **others: Any) -> Row:
    """A step of a change that sets a quota of a user with this name."""
    given = {
        "run_id": "r",
        "number": int(second),
        "plan_id": "p",
        "change_id": change,
        "step": step,
    }
    given |= {"entity_type": "user", "entity_name": change, "config_key": "producer_byte_rate"}
    given |= {"purpose": "apply", "operation": "SET", "operand": "9", "config_value": "9"}
    given |= {"expires_at": at(second + HOUR_S), "reason": "why", "run_by": "us"}
    evidence = {"evidence_table": "quota_usage", "evidence_key": "k"}
    return row("config_changes", second, given | evidence | others)


def changes_section(warehouse: Warehouse, *rows: Row) -> ReportSection:
    make_table(warehouse, CONFIG_CHANGES, list(rows))
    return changes.section(scope(warehouse, now=at(2 * HOUR_S)))


def test_what_is_held_is_told_with_its_end(warehouse: Warehouse) -> None:
    later = {"expires_at": at(3 * HOUR_S)}
    made = changes_section(warehouse, step(0, "begun", **later), step(1, "done", **later))
    assert made.sentences[:2] == ("1 change ended: done.", "quotaflow owns 1 config now.")
    (owned,) = made.grids[0].rows
    assert owned[:4] == ("user a", "producer_byte_rate", "9", "not set")
    assert owned[4:] == ("2026-11-21 12:00:01", "2026-11-21 15:00:00")
    assert made.alarms == ()


def test_a_lease_that_is_over_is_an_alarm(warehouse: Warehouse) -> None:
    (alarm,) = changes_section(warehouse, step(0, "begun"), step(1, "done")).alarms
    assert alarm.severity == SOON
    assert alarm.text.startswith("Leases are over, and not restored: user a")


def test_what_was_given_back_is_held_no_more(warehouse: Warehouse) -> None:
    back = {"purpose": "restore", "run_id": "r2", "operation": "DELETE", "config_value": None}
    made = changes_section(warehouse, step(0, "begun"), step(1, "done"), step(9, "done", **back))
    assert made.sentences[1] == "quotaflow owns no config now."
    assert made.alarms == ()


def test_a_change_without_an_end_is_an_alarm(warehouse: Warehouse) -> None:
    (alarm,) = changes_section(warehouse, step(0, "begun")).alarms
    assert alarm.severity == NOW
    assert "1 change has no end, because a run was cut off." in alarm.text


def test_changes_of_other_clusters_are_theirs(warehouse: Warehouse) -> None:
    made = changes_section(warehouse, step(0, "begun", cluster_id="c2"))
    assert made.sentences[0].startswith("Nothing was written")
