"""Answers as they are declared: tables, texts, order and lookbacks fit together."""

import pytest

from quotaflow.pipelines.feedback.planning.evidence_checks import PROPOSED_BY
from quotaflow.pipelines.results.answers.answer import Answer
from quotaflow.pipelines.results.answers.refresh import in_order
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.snapshots.settings import KEYS
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.sql_dialects import tables_in

NAMES = [answer.name for answer in ANSWERS]
each_answer = pytest.mark.parametrize("answer", ANSWERS, ids=NAMES)


def test_no_answer_is_also_a_view() -> None:
    assert views.load().keys() & set(NAMES) == set()


def test_no_answers_read_each_other() -> None:
    # Each is computed after those that it reads: a circle has no order.
    order = list(in_order(ANSWERS).static_order())
    assert set(order) == set(NAMES)
    assert all(
        set(answer.inputs) & set(order[order.index(answer.name) :]) == set() for answer in ANSWERS
    )


@each_answer
def test_a_lookback_is_of_an_input_and_of_a_setting_that_exists(answer: Answer) -> None:
    assert answer.lookbacks.keys() <= set(answer.inputs)
    named = {each.setting for each in answer.lookbacks.values() if each.setting}
    assert named <= set(KEYS)
    assert not named or "settings" in answer.inputs


@each_answer
def test_a_table_with_a_row_per_event_is_not_read_whole(answer: Answer) -> None:
    # The others have a row per change of the cluster, of conf or by an administrator. Those of
    # offsets change at each snapshot, and are kept for a week.
    whole = set(answer.inputs) - answer.lookbacks.keys() - set(NAMES)
    assert whole <= {
        "brokers",
        "client_quotas",
        "config_alterations",
        "config_changes",
        "configs",
        "group_assignments",
        "group_offsets",
        "groups",
        "partition_offsets",
        "metric_alert_events",
        "moving_replicas",
        "reassignment_changes",
        "replicas",
        "settings",
        "topic_names",
        "topics",
    }


def test_desired_configs_reads_answers_and_staging_views_only() -> None:
    read = tables_in(views.load()["desired_configs"].sql)
    assert {name for name in read if views.load().keys() & {name}} == {
        "current_client_quotas",
        "current_configs",
    }
    assert read - views.load().keys() <= set(NAMES)


def test_each_answer_of_desired_configs_proposes_some_evidence() -> None:
    read = tables_in(views.load()["desired_configs"].sql) & set(NAMES)
    assert set(PROPOSED_BY.values()) == read
