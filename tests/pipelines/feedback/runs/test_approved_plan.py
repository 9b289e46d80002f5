"""Commands plan, apply, release and restore on real tables, with a dictionary as the cluster."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.feedback.ledger.journal import to_row
from quotaflow.pipelines.feedback.ledger.ledger import RELEASED
from quotaflow.pipelines.feedback.writing import exclusive_section
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ....rows import limited
from ....schemas.views.limit_rows import offending_now
from ....schemas.views.view_tables import make_tables_and_answers
from ..fake_configs import DictConfigs, desired, forged

RATE = "producer_ids_rate"
A = desired("a").entity


class Operator:
    """Runs commands on a warehouse in which these users are over their quota of producer ids."""

    def __init__(self, warehouse: Warehouse, capsys: pytest.CaptureFixture[str]) -> None:
        self.warehouse, self.capsys = warehouse, capsys
        self.configs = DictConfigs()

    def seen(self, *users: str, **tables: Any) -> None:
        make_tables_and_answers(self.warehouse, offending_now(*users) | tables)

    def run(self, *words: str) -> tuple[int, str]:
        ways = [f"warehouse.path={self.warehouse.conf.folder}", "plan.canary=false"]
        ways += ["plan.max_entity_share=1", "producer_ids.default_quota_per_s=1"]
        code = execute([*words, *(word for way in ways for word in ("--set", way))])
        printed = self.capsys.readouterr()
        return code, printed.out + printed.err

    def saved(self) -> str:
        text = self.run("plan", "--save")[1]
        match = re.search(r"quotaflow apply (\w+) --yes", text)
        assert match, text
        return match[1]


@pytest.fixture
def operator(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Operator:
    operator = Operator(warehouse, capsys)

    @contextmanager
    def cluster(_: object) -> Iterator[tuple[str, DictConfigs]]:
        yield "c1", operator.configs

    monkeypatch.setattr(exclusive_section, "open_cluster", cluster)
    return operator


@pytest.mark.faults
def test_an_approved_plan_is_written_while_its_offence_lasts(operator: Operator) -> None:
    operator.seen("a")
    plan_id = operator.saved()
    assert operator.run("apply", plan_id, "--yes")[0] == 0
    assert operator.configs.configs == {A: {RATE: "1.5"}}
    assert operator.run("apply", plan_id, "--yes")[0] == 0
    assert operator.configs.writes == 1
    assert operator.run("restore", "--all", "--yes")[0] == 0
    assert operator.configs.configs == {A: {}}


@pytest.mark.faults
def test_an_approved_change_whose_offence_is_over_is_left_out(operator: Operator) -> None:
    operator.seen("a")
    plan_id = operator.saved()
    operator.seen()
    code, text = operator.run("apply", plan_id, "--yes")
    assert (code, operator.configs.configs) == (1, {})
    assert "results no longer ask for it" in text


def test_an_approved_plan_is_not_written_over_an_operator_s_hand(operator: Operator) -> None:
    operator.seen("a")
    plan_id = operator.saved()
    removed = limited(0, RATE, None, entity_name="a", principal="User:eve")
    operator.seen("a", config_alterations=[removed])
    code, text = operator.run("apply", plan_id, "--yes")
    assert (code, operator.configs.configs) == (1, {})
    assert "User:eve" in text
    assert "quotaflow release user/a producer_ids_rate lets plans change it" in text
    assert operator.run("release", "user/a", RATE)[0] == 3
    assert operator.run("release", "user/a", RATE, "--yes")[0] == 0
    assert operator.run("apply", plan_id, "--yes")[0] == 0
    assert operator.configs.configs == {A: {RATE: "1.5"}}


@pytest.mark.faults
def test_a_forged_release_lets_nothing_be_written(operator: Operator) -> None:
    operator.seen("a")
    plan_id = operator.saved()
    removed = limited(0, RATE, None, entity_name="a", principal="User:eve")
    claim = replace(forged(A, RATE, None, None), step=RELEASED, event_time=datetime.now(UTC))
    rows = {"config_alterations": [removed], "config_changes": [to_row(claim, "mallory")]}
    operator.seen("a", **rows)
    for words in (("apply", plan_id, "--yes"), ("apply", "--yes")):
        _, text = operator.run(*words)
        assert operator.configs.configs == {}
        assert "User:eve" in text


@pytest.mark.faults
def test_a_halt_is_released_by_a_person(operator: Operator) -> None:
    operator.seen("a")
    assert operator.run("release", "halt")[0] == 3
    code, text = operator.run("release", "halt", "--yes")
    assert (code, text) == (0, "plans may write to cluster c1 again\n")
    assert operator.run("release", "user/a")[0] == 2
