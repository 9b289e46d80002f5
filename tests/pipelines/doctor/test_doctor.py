"""The command doctor: its findings as text, CSV and JSON."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.errors import KafkaError
from quotaflow.pipelines.kafka import admin
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...cases import cases
from ...schemas.views.view_tables import make_tables


def test_doctor_finds_a_cluster_that_does_not_answer(
    capsys: pytest.CaptureFixture[str], warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(*_: object) -> admin.Cluster:
        raise KafkaError("no broker of b:9092 answered in 4 tries (timeout): is the cluster up?")

    monkeypatch.setattr(admin, "describe", nobody)
    with warehouse.lock():
        words = ["--json", "--set", f"warehouse.path={warehouse.conf.folder}"]
        assert execute(["doctor", *words]) == 1
    findings = {
        row["subject"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())
    }
    assert findings["cluster"]["state"] == "bad"
    assert findings["cluster"]["remedy"] == "is the cluster up?"
    assert "held by process" in findings["lock"]["observed"]
    assert findings["tables"]["state"] == "warning"
    assert (findings["stop file"]["state"], findings["leases"]["state"]) == ("ok", "ok")
    assert "lock" in findings
    assert "rights to run" not in findings


@cases(
    ("option", "expected"),
    ("text", [], "bad        cluster: nobody answered\n           -> is it up?"),
    ("csv", ["--csv"], "bad,cluster,nobody answered,is it up?"),
)
def test_doctor_prints_what_it_observed(
    option: list[str],
    expected: str,
    capsys: pytest.CaptureFixture[str],
    warehouse: Warehouse,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> admin.Cluster:
        raise KafkaError("nobody answered: is it up?")

    monkeypatch.setattr(admin, "describe", refuse)
    assert execute(["doctor", *option, "--set", f"warehouse.path={warehouse.conf.folder}"]) == 1
    assert expected in capsys.readouterr().out


def test_doctor_finds_leases_nobody_ends_and_a_stop_file(
    capsys: pytest.CaptureFixture[str], warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    ago = datetime.now(UTC) - timedelta(hours=2)
    change: dict[str, Any] = {"cluster_id": "c1", "run_id": "r", "plan_id": "p", "purpose": "apply"}
    change |= {"entity_type": "user", "config_key": "producer_byte_rate", "operation": "SET"}
    change |= {"config_value": "5", "operand": "5", "expires_at": ago + timedelta(hours=1)}
    change |= {"event_time": ago, "reason": "", "evidence_table": "", "evidence_key": ""}
    done = change | {"entity_name": "a", "change_id": "1", "step": "done", "number": 1}
    started = change | {"entity_name": "b", "change_id": "2", "step": "begun", "number": 2}
    make_tables(warehouse, {"config_changes": [done, started]})
    (warehouse.conf.folder / "STOP").touch()

    def nobody(*_: object) -> admin.Cluster:
        raise KafkaError("nobody: is the cluster up?")

    monkeypatch.setattr(admin, "describe", nobody)
    execute(["doctor", "--json", "--set", f"warehouse.path={warehouse.conf.folder}"])
    findings = {
        row["subject"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())
    }
    assert "is there" in findings["stop file"]["observed"]
    assert findings["leases"]["observed"] == (
        "1 config owned, 1 past their lease, 1 change without a known end"
    )
