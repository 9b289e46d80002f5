"""Answers as they are declared: tables, texts, order and lookbacks fit together."""

import re

import pytest

from quotaflow.pipelines.feedback.planning.evidence_checks import PROPOSED_BY
from quotaflow.pipelines.results.answers.answer import Answer
from quotaflow.pipelines.results.answers.refresh import in_order
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.snapshots.settings import KEYS
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.sql_dialects import tables_in

PROPOSED = [column.name for column in views.load()["desired_configs"].columns]
"""The columns of a proposal."""
PROPOSALS = {answer.name: answer for answer in ANSWERS if answer.table.column_names == PROPOSED}
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


def test_desired_configs_is_the_union_of_proposals_and_each_is_proposed_by_its_evidence() -> None:
    nested = {"throttled_replica_proposals"}
    assert tables_in(views.load()["desired_configs"].sql) == PROPOSALS.keys() - nested
    assert set(PROPOSED_BY.values()) == PROPOSALS.keys() - nested


@pytest.mark.parametrize("name", PROPOSALS)
def test_the_signals_of_a_proposal_are_those_of_its_head(name: str) -> None:
    answer = PROPOSALS[name]
    texts = [answer.sql, *(PROPOSALS[each].sql for each in PROPOSALS.keys() & {*answer.inputs})]
    (evidence,) = (each for each in answer.table.columns if each.name == "evidence")
    # A signal that a principal names has a column with that name beside it.
    signal = r"'?(?:\w+\.)?(\w+?)(?:'|_name) AS signal"
    signals = {each for text in texts for each in re.findall(signal, text)}
    assert signals == set(re.findall(r"(\w+) \([^)]+\): ", evidence.comment))
