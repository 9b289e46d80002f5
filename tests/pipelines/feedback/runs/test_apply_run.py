"""Whether a frozen plan still fits the cluster, and which changes are left to make."""

from datetime import timedelta

import pytest

from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.feedback.configs.change import RENEW, SET, FrozenPlan
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.ledger.outcome import ALREADY_SET
from quotaflow.pipelines.feedback.planning.guards import SNAPSHOT, PlanPolicy
from quotaflow.pipelines.feedback.planning.restore_plan import LaterWriter
from quotaflow.pipelines.feedback.runs.apply_run import still_fitting

from ..fake_configs import Clock, DictConfigs, ListJournal, applying, desired, planned

KEY = "producer_byte_rate"
LIST = "leader.replication.throttled.replicas"
MALLORY = desired().entity
EVE = LaterWriter("User:eve (kafka-reassign-partitions) at noon", SET, "0:1")


def frozen(journal: ListJournal, clock: Clock, *rows: DesiredConfig) -> FrozenPlan:
    bounds = PlanPolicy(lease_s=600, inputs_at={SNAPSHOT: clock.now})
    made = planned(*rows, bounds=bounds, ledger=journal.ledger, now=clock.now)
    return FrozenPlan(made, clock())


def test_what_somebody_set_anew_is_no_left_over_any_more() -> None:
    """A new move throttles the same replicas: the list is as it was, and is not to be removed."""
    columns = {"entity_type": "topic", "config_key": LIST}
    row = desired("t", **columns, config_value=None, prior_value="0:1")
    configs, journal = DictConfigs({row.entity: {LIST: "0:1"}}), ListJournal()
    approved_plan = frozen(journal, Clock(), row)
    left, ended = still_fitting(approved_plan, configs, journal.ledger, {})
    assert (left, ended) == (list(approved_plan.plan.changes), [])
    with pytest.raises(FeedbackError, match=r"eve .* altered it since it was planned; and"):
        still_fitting(approved_plan, configs, journal.ledger, {row.key: EVE})


def test_what_somebody_else_made_so_stays_theirs() -> None:
    configs, journal = DictConfigs({MALLORY: {KEY: "1000"}}), ListJournal()
    approved_plan = frozen(journal, Clock(), desired())
    left, _ = still_fitting(approved_plan, configs, journal.ledger, {desired().key: EVE})
    (outcome,) = applying(configs, journal).run(approved_plan.plan.plan_id, left)
    assert outcome.step == ALREADY_SET


def renewing(configs: DictConfigs, journal: ListJournal, clock: Clock) -> FrozenPlan:
    """A plan of a renewal and of a new quota, frozen when the first lease is nearly over."""
    first = frozen(journal, clock, desired()).plan
    applying(configs, journal, "r0", clock).run(first.plan_id, first.changes)
    clock.now += timedelta(seconds=400)
    approved_plan = frozen(journal, clock, desired(prior_value="1000"), desired("eve"))
    names = {c.entity.entity_name: c.operation.name for c in approved_plan.plan.changes}
    assert names == {"mallory": RENEW, "eve": SET}
    return approved_plan


def test_a_plan_with_a_renewal_can_be_finished_after_it_was_cut_off() -> None:
    configs, journal, clock = DictConfigs(), ListJournal(), Clock()
    approved_plan = renewing(configs, journal, clock)
    renewal = [c for c in approved_plan.plan.changes if c.operation.name == RENEW]
    applying(configs, journal, "r1", clock).run(approved_plan.plan.plan_id, renewal)
    for run_id in ("r2", "r3"):
        left, ended = still_fitting(approved_plan, configs, journal.ledger, {})
        assert [(o.change.operation.name, o.step) for o in ended] == [(RENEW, ALREADY_SET)]
        applying(configs, journal, run_id, clock).run(approved_plan.plan.plan_id, left)
    assert configs.configs[desired("eve").entity] == {KEY: "1000"}
    assert [r.run_id for r in journal.records if r.operation == RENEW] == ["r1", "r1"]


def test_what_was_given_back_is_not_written_by_an_old_approval() -> None:
    configs, journal, clock = DictConfigs(), ListJournal(), Clock()
    approved_plan = renewing(configs, journal, clock)
    applying(configs, journal, "r1", clock).run(
        approved_plan.plan.plan_id, approved_plan.plan.changes
    )
    del configs.configs[desired("eve").entity]
    with pytest.raises(FeedbackError, match="applied before, and what it wrote was restored"):
        still_fitting(approved_plan, configs, journal.ledger, {})


def test_what_is_no_longer_as_it_was_planned_on_is_told_with_how_many() -> None:
    configs, journal = DictConfigs({MALLORY: {KEY: "7"}}), ListJournal()
    approved_plan = frozen(journal, Clock(), desired(), desired("eve"))
    with pytest.raises(FeedbackError, match=r"it is 7 now.*1 of 2 changes no longer fits"):
        still_fitting(approved_plan, configs, journal.ledger, {})
