"""The command doctor: its findings as text, CSV and JSON."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from quotaflow.pipelines.errors import KafkaError
from quotaflow.pipelines.kafka import admin
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...cases import cases
from ...command_line import Command, Printed
from ...rows import row
from ...schemas.views.view_tables import make_tables

Doctor = Callable[..., Printed]


@pytest.fixture
def doctor(table_command: Command, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """Examines the test's tables, and a cluster of which no broker answers."""

    def nobody(*_: object) -> admin.Cluster:
        raise KafkaError("nobody answered: is it up?")

    monkeypatch.setattr(admin, "describe", nobody)
    return partial(table_command, "doctor", code=1)


def test_doctor_finds_a_cluster_that_does_not_answer(doctor: Doctor, warehouse: Warehouse) -> None:
    with warehouse.lock():
        findings = {row["subject"]: row for row in doctor("--json").rows}
    assert findings["cluster"]["state"] == "bad"
    assert findings["cluster"]["remedy"] == "is it up?"
    assert "held by process" in findings["lock"]["observed"]
    assert findings["tables"]["state"] == "warning"
    assert (findings["stop file"]["state"], findings["leases"]["state"]) == ("ok", "ok")
    assert "rights to run" not in findings


@cases(
    ("option", "expected"),
    ("text", [], "bad        cluster: nobody answered\n           -> is it up?"),
    ("csv", ["--csv"], "bad,cluster,nobody answered,is it up?"),
)
def test_doctor_prints_what_it_observed(doctor: Doctor, option: list[str], expected: str) -> None:
    assert expected in doctor(*option).out


def test_doctor_finds_leases_nobody_ends_and_a_stop_file(
    doctor: Doctor, warehouse: Warehouse
) -> None:
    ago = datetime.now(UTC) - timedelta(hours=2)
    given = {"run_id": "r", "plan_id": "p", "purpose": "apply", "entity_type": "user"}
    given |= {"config_key": "producer_byte_rate", "operation": "SET", "reason": ""}
    given |= {"config_value": "5", "operand": "5", "evidence_table": "", "evidence_key": ""}
    change = row("config_changes", ago, given, expires_at=ago + timedelta(hours=1))
    done = change | {"entity_name": "a", "change_id": "1", "step": "done", "number": 1}
    started = change | {"entity_name": "b", "change_id": "2", "step": "begun", "number": 2}
    make_tables(warehouse, {"config_changes": [done, started]})
    (warehouse.conf.folder / "STOP").touch()
    findings = {row["subject"]: row for row in doctor("--json").rows}
    assert "is there" in findings["stop file"]["observed"]
    assert findings["leases"]["observed"] == (
        "1 config owned, 1 overdue, 1 change without a known end"
    )
