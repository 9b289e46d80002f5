"""Commands plan, apply, release and restore on real tables, with a dictionary as the cluster."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.feedback.ledger.journal import to_row
from quotaflow.pipelines.feedback.ledger.ledger import RELEASED
from quotaflow.pipelines.feedback.writing import exclusive_section
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ....rows import limited
from ....schemas.views.limit_rows import offending_now
from ....schemas.views.view_tables import make_tables_and_answers
from ...warehouse import catalogs
from ..fake_configs import DictConfigs, desired, forged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RATE = "producer_ids_rate"
UNLIKE = re.compile(
    r"\b[0-9a-f]{20,}\b|\d{4}-\d\d-\d\d[ T][\d:.]+Z?|^starting Spark\n", re.MULTILINE
)
"""Ids, times, and that a session starts."""
A = desired("a").entity


class Operator:
    """Runs commands on a warehouse in which these users are over their quota of producer ids."""

    def __init__(self, warehouse: Warehouse, capsys: pytest.CaptureFixture[str]) -> None:
        self.warehouse, self.capsys = warehouse, capsys
        self.configs = DictConfigs()
        self.place = [f"warehouse.path={warehouse.conf.folder}"]

    def seen(self, *users: str, **tables: Any) -> None:
        make_tables_and_answers(self.warehouse, offending_now(*users) | tables)

    def run(self, *words: str) -> tuple[int, str]:
        ways = [*self.place, "plan.canary=false", "plan.max_entity_share=1"]
        ways.append("producer_ids.default_quota_per_s=1")
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


@pytest.mark.spark
@pytest.mark.faults
def test_a_catalog_is_planned_written_and_restored_as_a_folder(
    spark: "SparkSession", operator: Operator, tmp_path: Path
) -> None:
    operator.seen("a")
    copy, schema = tmp_path / "copy", "spark_catalog.operated"
    shutil.copytree(operator.warehouse.conf.folder, copy)
    key = tmp_path / "key"
    key.write_text("ab" * 32, encoding="ascii")
    key.chmod(0o600)
    # Many machines may share a catalog, so no command makes a key for it.
    signed = f"feedback.signing_keys=[file:{key}]"
    operator.place.append(signed)

    def walked() -> Iterator[str]:
        plan_id = operator.saved()
        for words in (
            ("plan",),
            ("apply", plan_id),
            ("apply", plan_id, "--yes"),
            ("restore", "--all"),
            ("restore", "--all", "--yes"),
            ("restore", "--panic", "--yes"),
        ):
            code, text = operator.run(*words)
            yield f"{words[:1]} {code} {UNLIKE.sub('', text)}"
        assert operator.configs.configs == {A: {}}

    expected = list(walked())
    with catalogs.of_folder(spark, copy, schema):
        checkpoints = f"warehouse.checkpoints={copy}/_checkpoints"
        operator.place = [f"warehouse.catalog_schema={schema}", checkpoints, signed]
        operator.configs = DictConfigs()
        assert [text.replace(schema, str(copy)) for text in walked()] == expected


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
