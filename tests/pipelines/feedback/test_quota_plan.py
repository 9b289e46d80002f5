"""Quotas in a plan: first values, steps down with their gain, and steps back when it is well."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.feedback import plan_policy, plan_rows
from quotaflow.pipelines.feedback.change import APPLY, RESTORE, Plan
from quotaflow.pipelines.feedback.desired_configs import ConfigEntity, DesiredConfig
from quotaflow.pipelines.feedback.guards import REQUESTS, RESULTS, SNAPSHOT, PlanPolicy
from quotaflow.pipelines.feedback.kafka_configs import Connection
from quotaflow.pipelines.feedback.ledger import Ledger
from quotaflow.pipelines.feedback.plan import plan
from quotaflow.pipelines.reasons import quota_steps
from quotaflow.udfs.rules.quota_step import GIVE_BACK, RAISE, TIGHTEN, StepLimits

from .fake_configs import NOON, Clock, DictConfigs, ListJournal, applying, desired

KEY = "producer_byte_rate"
ENTITY = ConfigEntity("c1", "user", "mallory", "clicks")
PLAIN = Connection("b:9092")
WEEK_S = 7 * 86_400.0
USED = {"usage_p99": 1e6, "usage_median": 4e5, "history_s": WEEK_S}
BOUNDS = PlanPolicy(lease_s=3_600, hysteresis=0.1, step_limits=StepLimits())
EVERY = timedelta(minutes=10)


def offending(offence: float = 10.0, **others: object) -> DesiredConfig:
    columns = {"entity_client_id": "clicks", "config_value": "25", "direction": TIGHTEN}
    return desired(**(columns | USED | {"observed": offence} | others))


def made(row: DesiredConfig, bounds: PlanPolicy = BOUNDS, ledger: Ledger | None = None) -> Plan:
    return plan([row], NOON, bounds, PLAIN, ledger or Ledger())


def test_conf_bounds_first_values_and_steps() -> None:
    conf = config.load(overrides=["plan.max_tighten_share=0.1", "plan.min_history_s=60"])
    limits = plan_policy.from_conf(conf).step_limits
    assert limits is not None
    assert limits.max_tighten_share == 0.1
    assert limits.min_history == timedelta(seconds=60)
    assert limits.dead_time == timedelta(minutes=20)


@pytest.mark.parametrize(
    ("row", "value"),
    [
        pytest.param(offending(), "1000000", id="unlimited: the p99 of its busiest broker"),
        pytest.param(offending(prior_value="1000000"), "800000", id="its own: a fifth less"),
        pytest.param(
            offending(prior_value="1000000", usage_p99=3e6),
            "800000",
            id="never above its own, also if it used more",
        ),
        pytest.param(
            offending(quota_in_force=1e6, quota_level=4, usage_p99=3e6),
            "800000",
            id="never above a default",
        ),
        pytest.param(
            desired(config_value="25", **USED), "1000000", id="a first quota for no offence, too"
        ),
        pytest.param(
            desired(config_value="2500000", **USED), "2500000", id="which may leave more room"
        ),
        pytest.param(
            desired(config_value="25", **USED | {"usage_p99": 1.0, "usage_median": 1.0}),
            "65536",
            id="and never goes below the floor",
        ),
        pytest.param(
            desired(config_value="9000000", prior_value="1000000", direction=RAISE, **USED),
            "2000000",
            id="a raise goes in steps",
        ),
        pytest.param(
            desired(
                config_key="producer_ids_rate", config_value="5", prior_value="2", direction=TIGHTEN
            ),
            None,
            id="a quota that goes by no steps is not loosened either",
        ),
    ],
)
def test_the_value_of_a_row(row: DesiredConfig, value: str | None) -> None:
    changes = made(row).changes
    assert [change.value for change in changes] == ([] if value is None else [value])
    assert all(change.purpose == APPLY for change in changes)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        pytest.param(
            offending(history_s=3_600.0),
            "history_too_short: its usage is known for 3600 s, and plan.min_history_s is 604800",
            id="an hour of history",
        ),
        pytest.param(desired(config_value="25"), "history_too_short", id="a first value alike"),
        pytest.param(
            desired(config_value="25", history_s=WEEK_S), "at its busiest broker", id="no usage"
        ),
        pytest.param(offending(observed=None), "how much it offends", id="an offence of no size"),
        pytest.param(
            offending(prior_value="200000"), "is at its floor: 0.5 of the median", id="at the floor"
        ),
        *(
            pytest.param(
                offending(quota_in_force=1e6, quota_level=level),
                "clients share a quota of level",
                id=f"a client id shares a quota of level {level}",
            )
            for level in (3, 6, 7, 8)
        ),
        *(
            pytest.param(
                offending(entity_client_id=None, quota_in_force=1e6, quota_level=level),
                "clients share a quota of level",
                id=f"a user shares a quota of level {level}",
            )
            for level in (4, 5, 7, 8)
        ),
        pytest.param(
            offending(prior_value="9223372036854775807"),
            "could not be given back",
            id="a restore could not set Long.MAX",
        ),
        pytest.param(
            desired(config_value="25", prior_value="1000000", **USED),
            "only a step may lower it",
            id="a row without an offence lowers nothing",
        ),
        pytest.param(
            desired(config_value="2000000", prior_value="1000000", **USED),
            "this row raises none",
            id="one that says no direction raises nothing",
        ),
        pytest.param(
            desired(config_value="2500000", quota_in_force=1e6, quota_level=6, **USED),
            "this row raises none",
            id="nor takes the place of a default with more",
        ),
    ],
)
def test_what_is_not_planned(row: DesiredConfig, why: str) -> None:
    plan_made = made(row)
    assert plan_made.changes == ()
    assert why in plan_made.blocked[0].reason


Offend = Callable[[float | None], float]


@dataclass
class Loop:
    """Plan and apply every ten minutes against an offender that reacts to its quota."""

    offend: Offend
    prior: str | None = None
    configs: DictConfigs = field(default_factory=DictConfigs)
    journal: ListJournal = field(default_factory=ListJournal)
    values: list[str | None] = field(default_factory=list)
    purposes: list[str] = field(default_factory=list)
    last_plan: Plan = field(default_factory=lambda: Plan((), ()))
    cycles: int = 0

    def __post_init__(self) -> None:
        if self.prior is not None:
            self.configs.configs[ENTITY] = {KEY: self.prior}

    @property
    def value(self) -> str | None:
        return self.configs.read(ENTITY).get(KEY)

    def run(self, cycles: int, bounds: PlanPolicy = BOUNDS) -> None:
        for _ in range(cycles):
            now = NOON + self.cycles * EVERY
            self.cycles += 1
            current = None if self.value is None else float(self.value)
            offence = self.offend(current)
            rows = [offending(offence, prior_value=self.value)] if offence else []
            inputs = dict.fromkeys((REQUESTS, RESULTS, SNAPSHOT), now)
            policy = replace(bounds, inputs_at={**inputs, **bounds.inputs_at})
            self.last_plan = plan(rows, now, policy, PLAIN, self.journal.ledger)
            # What is frozen for approval is the same as what is not.
            frozen = plan_rows.changes(plan_rows.rows(self.last_plan, now, "me"))
            writer = applying(self.configs, self.journal, f"r{self.cycles}", Clock(now))
            writer.run("p", frozen)
            written = [change for change in frozen if change.command]
            self.values += [change.value for change in written]
            self.purposes += [change.purpose for change in written]


@pytest.mark.parametrize("prior", [None, "5000000"])
def test_a_quota_that_does_not_help_is_given_back_and_not_tried_again_for_a_day(
    prior: str | None,
) -> None:
    loop = Loop(lambda _: 10.0, prior)
    loop.run(11)
    assert loop.values == ["1000000", "800000", prior]
    assert loop.purposes == [APPLY, APPLY, RESTORE]
    assert loop.journal.ledger.owned == {}
    loop.run(140)
    assert len(loop.values) == 3
    assert "a person must see to this offender" in loop.last_plan.blocked[0].reason
    loop.run(10)
    assert loop.values[3] == "1000000"


def test_one_that_helps_stays_while_the_offence_goes_on() -> None:
    loop = Loop(lambda value: 10.0 if value is None else 10.0 * value / 1e6)
    loop.run(100)
    assert loop.values[:4] == ["1000000", "800000", "640000", "512000"]
    assert loop.purposes == [APPLY] * len(loop.values)
    assert 200_000 <= float(loop.value or 0) < 223_000
    (owned,) = loop.journal.ledger.owned.values()
    assert owned.prior_value is None
    assert owned.expires_at is not None
    assert owned.expires_at > NOON + loop.cycles * EVERY, "its lease is renewed"


def test_once_it_is_well_it_is_given_back_step_by_step() -> None:
    is_over = False
    loop = Loop(lambda value: 0.0 if is_over else 10.0 if value is None else value / 1e5, "5000000")
    loop.run(11)
    assert loop.values == ["1000000", "800000", "640000"]
    is_over = True
    loop.run(30)
    assert loop.values[3:] == ["800000", "1000000", "5000000"]
    assert loop.purposes[3:] == [RESTORE] * 3
    assert loop.journal.ledger.owned == {}
    assert loop.value == "5000000"


def test_nothing_is_given_back_on_old_results_or_while_well_for_too_short() -> None:
    is_over = False
    loop = Loop(lambda value: 0.0 if is_over else 10.0 if value is None else value / 1e5)
    loop.run(11)
    is_over = True
    old = {RESULTS: NOON - timedelta(days=1)}
    loop.run(10, replace(BOUNDS, inputs_at=old, max_input_age=timedelta(minutes=15)))
    assert len(loop.values) == 3
    assert "the age of the results" in loop.last_plan.blocked[0].reason
    loop.run(10, replace(BOUNDS, evidence_window=timedelta(minutes=39)))
    assert len(loop.values) == 3


def test_what_somebody_else_set_is_not_given_back() -> None:
    is_over = False
    loop = Loop(lambda value: 0.0 if is_over else 10.0 if value is None else value / 1e5)
    loop.run(10)
    is_over = True
    loop.configs.configs[ENTITY] = {KEY: "50000000"}
    loop.run(10)
    assert loop.value == "50000000"


def test_a_lease_that_ended_ends_its_steps() -> None:
    loop = Loop(lambda _: 10.0)
    loop.run(6)
    record = loop.journal.records[-1]
    end = replace(record, purpose=RESTORE, direction=None, observed=None, config_value=None)
    end = replace(end, expires_at=None, event_time=record.event_time + timedelta(minutes=1))
    loop.journal.records.append(end)
    loop.configs.configs[ENTITY] = {}
    assert loop.journal.ledger.owned == {}
    loop.run(5)
    assert loop.values[-1] == "1000000", "it begins with the first value again"


def test_a_step_back_keeps_the_value_from_before_ours() -> None:
    loop = Loop(lambda value: 10.0 if value is None else value / 1e5, "5000000")
    loop.run(11)
    loop.offend = lambda _: 0.0
    loop.run(6)
    (owned,) = loop.journal.ledger.owned.values()
    assert (owned.prior_value, owned.value) == ("5000000", "800000")
    assert loop.journal.records[-1].direction == GIVE_BACK


def test_the_page_names_every_reason() -> None:
    page = (Path(__file__).parents[3] / "docs" / "quotas.md").read_text(encoding="utf-8")
    assert {code for code in quota_steps.WORDS if f"`{code}`" not in page} == set()
