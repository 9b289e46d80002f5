"""Which evidence a plan may rest on, by the results of checks."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.config import QualitySection
from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.feedback.configs.change import FrozenPlan
from quotaflow.pipelines.feedback.planning import evidence_checks
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy
from quotaflow.pipelines.feedback.runs import apply_run, context
from quotaflow.pipelines.results.answers.refresh import refresh
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ....cases import cases
from ....delta_tables import NOON
from ....schemas.views.view_tables import make_tables, no_session
from ..fake_configs import FakeTables, desired, planned

CONF = config.Conf()
REQUIRED = config.Conf(quality=QualitySection(required=True))


def result(suite: str, *, success: bool = True, after_s: int = 0, **others: Any) -> dict[str, Any]:
    """A row of quality_results."""
    row = {"event_time": NOON + timedelta(seconds=after_s), "run_id": f"r{after_s}"}
    row |= {"suite": suite, "expectation": "key_unique", "severity": "critical"}
    return row | {"success": success} | others


def unsound(
    warehouse: Warehouse, conf: config.Conf, results: list[dict[str, Any]], *evidence: str
) -> dict[str, str]:
    make_tables(warehouse, {"quality_results": results})
    here = conf.model_copy(update={"warehouse": warehouse.conf})
    return context.of_plans(here).evidence.failed(FolderReader(warehouse), set(evidence))


@cases(
    ("failed", "evidence", "stops"),
    ("the evidence itself", "producer_id_rates", "producer_id_rates", True),
    ("what it is computed from", "requests", "producer_id_rates", True),
    ("what a view's tables are", "requests", "throttle_sizing", True),
    ("over two hops", "telemetry_pushes", "metric_alerts", True),
    ("rows may be lost", "pipeline_progress", "current_configs", True),
    ("something else", "client_metrics", "producer_id_rates", False),
    ("what nothing is computed from", "plans", "producer_id_rates", False),
)
def test_a_critical_failure_stops_what_stands_on_it(
    warehouse: Warehouse, failed: str, evidence: str, stops: bool
) -> None:
    reasons = unsound(warehouse, CONF, [result(failed, success=False)], evidence)
    why = f"rests on {failed}, whose check key_unique failed at 2026-11-21 12:00:00 UTC"
    assert [why in text for text in reasons.values()] == [True] * stops


@cases(
    "results",
    ("never checked", []),
    ("as it should be", [result("requests")]),
    ("a warning", [result("requests", success=False, severity="warning")]),
    ("a later run passed", [result("requests", success=False), result("requests", after_s=60)]),
    (
        "the check that failed is there no more",
        [
            result("requests", success=False),
            result("requests", after_s=60, expectation="another"),
        ],
    ),
)
def test_else_nothing_is_stopped(warehouse: Warehouse, results: list[dict[str, Any]]) -> None:
    assert unsound(warehouse, CONF, results, "producer_id_rates") == {}


def test_conf_may_ask_that_all_was_checked(warehouse: Warehouse) -> None:
    (why,) = unsound(warehouse, REQUIRED, [], "topics").values()
    assert "rests on pipeline_progress, which was never checked" in why
    assert "quality.required" in why


def test_with_all_checked_it_goes_on() -> None:
    checks = [
        {"suite": name, "expectation": "e", "is_failing": False, "event_time": NOON}
        for name in ("topics", "pipeline_progress")
    ]
    assert context.of_plans(REQUIRED).evidence.failed(FakeTables(checks), {"topics"}) == {}
    assert "topics" in context.of_plans(REQUIRED).evidence.failed(
        FakeTables([], exist=False), {"topics"}
    )


def test_a_plan_names_the_check_and_keeps_the_rest() -> None:
    bounds = PlanPolicy(
        failed_checks={"producer_id_rates": "it rests on requests, whose check failed"}
    )
    other = desired("b", evidence_table="quota_advice")
    made = planned(desired(), other, bounds=bounds)
    assert [change.entity.entity_name for change in made.changes] == ["b"]
    assert [blocked.reason for blocked in made.blocked] == [
        "it rests on requests, whose check failed"
    ]


def test_a_frozen_plan_is_not_applied_either(warehouse: Warehouse) -> None:
    make_tables(warehouse, {"quality_results": [result("requests", success=False)]})
    here = CONF.model_copy(update={"warehouse": warehouse.conf})
    made = planned(desired())
    with pytest.raises(FeedbackError, match="of producer_id_rates, it rests on requests, whose"):
        apply_run.dry_run(context.from_conf(here), FrozenPlan(made, NOON), NOON)


def test_results_never_made_are_no_failure(warehouse: Warehouse) -> None:
    here = CONF.model_copy(update={"warehouse": warehouse.conf})
    assert (
        context.of_plans(here).evidence.failed(FolderReader(warehouse), {"producer_id_rates"}) == {}
    )


def broken_violations(warehouse: Warehouse) -> None:
    """All answers, and an error of the one that proposes limits of producer ids."""
    make_tables(warehouse, {})
    broken = (
        replace(a, sql="SELECT 1") if a.name == "producer_id_offenders" else a for a in ANSWERS
    )
    refresh(warehouse.conf, no_session, NOON, lambda _: None, tuple(broken))


def test_a_row_of_an_answer_that_failed_is_not_planned(warehouse: Warehouse) -> None:
    broken_violations(warehouse)
    here = CONF.model_copy(update={"warehouse": warehouse.conf})
    evidence = {"producer_id_offenders", "quota_advice", "throttle_checks"}
    problems = context.of_plans(here).evidence.unusable(FolderReader(warehouse), evidence, NOON)
    assert problems.keys() == {"producer_id_offenders"}
    why = problems["producer_id_offenders"]
    assert why.startswith("producer_id_offenders is not up to date: ")


def test_nor_is_one_of_a_frozen_plan(warehouse: Warehouse) -> None:
    broken_violations(warehouse)
    here = CONF.model_copy(update={"warehouse": warehouse.conf})
    row = desired(evidence_table="producer_id_offenders")
    made = planned(row)
    with pytest.raises(FeedbackError, match="of producer_id_offenders, producer_id_offenders is"):
        apply_run.dry_run(context.from_conf(here), FrozenPlan(made, NOON), NOON)


def test_evidence_of_desired_configs_has_the_answer_that_proposes_it() -> None:
    texts = [views.load()["desired_configs"].sql]
    texts += [answer.sql for answer in ANSWERS if answer.name.endswith("_proposals")]
    named = {name for sql in texts for name in re.findall(r"'(\w+)' AS evidence_table", sql)}
    assert named == evidence_checks.PROPOSED_BY.keys()


def test_a_failed_check_of_what_an_answer_reads_stops_it(warehouse: Warehouse) -> None:
    checks = [result("quota_usage", success=False)]
    (why,) = unsound(warehouse, CONF, checks, "quota_advice").values()
    assert "it rests on quota_usage, whose check key_unique failed" in why
