"""A plan without some of its inputs: which are missing, and the plan of the rest."""

import re
from datetime import UTC, datetime

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.feedback.planning import evidence_checks, planning, unmade_inputs
from quotaflow.pipelines.feedback.runs import context
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.sql_dialects import tables_in
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ....cases import cases
from ....schemas.views.limit_rows import offending_now
from ....schemas.views.view_tables import make_tables_and_answers

ALERTS = {"metric_alerts", "current_configs"}


class Made:
    """Tables that are made, or not."""

    def __init__(self, *unmade: str) -> None:
        self.unmade = unmade
        self.empty: frozenset[str] = frozenset()

    def is_made(self, table: str) -> bool:
        return table not in self.unmade

    def with_empty(self, names: frozenset[str]) -> "Made":
        self.empty = names
        return self


@cases(
    ("unmade", "evidence", "line"),
    ("all are made", (), set(), ""),
    (
        "no telemetry",
        ("metric_alert_events", "subscription_proposals"),
        ALERTS,
        "never made: metric_alert_events (`quotaflow run metric_alerts --once` does that): "
        "nothing is planned that rests on current_configs, metric_alerts",
    ),
    ("a table that no plan reads", ("rack_traffic",), set(), ""),
    (
        "its inputs are made",
        ("subscription_proposals",),
        ALERTS,
        "never made: subscription_proposals (`quotaflow run --once` does that): nothing is "
        "planned that rests on current_configs, metric_alerts",
    ),
    (
        "through three answers",
        ("quota_usage", "quota_baselines", "quota_advice", "quota_proposals"),
        {"quota_advice"},
        "never made: quota_usage (`quotaflow run request_results --once` does that): nothing "
        "is planned that rests on quota_advice",
    ),
    (
        "no snapshot",
        ("configs",),
        set(evidence_checks.PROPOSED_BY),
        "never made: configs (`quotaflow snapshot` does that): nothing is planned that rests "
        f"on {', '.join(sorted(evidence_checks.PROPOSED_BY))}",
    ),
)
def test_what_is_missing_and_what_rests_on_it(
    unmade: tuple[str, ...], evidence: set[str], line: str
) -> None:
    made = Made(*unmade)
    missing, _ = unmade_inputs.read(made)  # type: ignore[arg-type]
    assert missing.unusable.keys() == evidence
    assert missing.lines == [line] * bool(line)
    assert made.empty <= set(unmade)
    assert all("was never made: `quotaflow " in why for why in missing.unusable.values())


def test_every_table_that_a_plan_reads_may_be_missing() -> None:
    """Else a plan would end with an error where one job never ran."""
    nothing = Made(*TABLES)
    unmade_inputs.read(nothing)  # type: ignore[arg-type]
    read = set(tables_in(views.load()["desired_configs"].sql)) & TABLES.keys()
    assert read <= nothing.empty
    assert {"settings", "config_alterations", "quota_usage"} <= nothing.empty
    assert "pipeline_progress" not in nothing.empty


def test_every_answer_of_a_plan_has_evidence() -> None:
    answers = {answer.name for answer in ANSWERS}
    read = set(tables_in(views.load()["desired_configs"].sql))
    assert read & answers == set(evidence_checks.PROPOSED_BY.values())


def test_without_telemetry_the_rest_is_planned(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    make_tables_and_answers(warehouse, offending_now("mallory"))
    ids = config.ProducerIdsSection(default_quota_per_s=1.0)
    conf = config.Conf(warehouse=warehouse.conf, producer_ids=ids)
    whole = planning.make(context.of_plans(conf), open_reader(conf), datetime.now(UTC))
    assert whole.changes
    assert whole.unmade == ()
    left_out = ("metric_alert_events", "subscription_proposals", "telemetry_subscriptions")
    for name in left_out:
        warehouse.folder(name).rename(warehouse.folder(name).with_suffix(".away"))
    words = [f"warehouse.path={warehouse.conf.folder}", "producer_ids.default_quota_per_s=1"]
    assert execute(["plan", *(word for each in words for word in ("--set", each))]) == 3
    out, printed = capsys.readouterr()
    assert re.search(r"^never made: metric_alert_events \(`quotaflow run metric_alerts", printed)
    assert "1 change waits" in printed
    assert f"--entity-name {whole.changes[0].desired.entity_name} --add-config" in out


def test_a_table_without_rows_is_no_table_of_another_reader(warehouse: Warehouse) -> None:
    conf = config.Conf(warehouse=warehouse.conf)
    tables = open_reader(conf)
    assert tables.with_empty(frozenset({"requests"})).rows("SELECT * FROM requests") == []
    with pytest.raises(Exception, match="never made"):
        tables.rows("SELECT * FROM requests")
