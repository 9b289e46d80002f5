"""Quotas and limits in a plan: first values, steps down with their gain, and what comes back."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.feedback.configs.change import APPLY, RESTORE, Plan
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity, DesiredConfig
from quotaflow.pipelines.feedback.ledger.ledger import Ledger
from quotaflow.pipelines.feedback.planning.guards import REQUESTS, RESULTS, SNAPSHOT, PlanPolicy
from quotaflow.pipelines.feedback.runs import context, frozen_plans
from quotaflow.pipelines.reasons import limits
from quotaflow.pipelines.reasons.wording import sentences
from quotaflow.udfs.rules import limit
from quotaflow.udfs.rules.limit import RAISE, TIGHTEN, LimitBounds

from ....cases import cases
from ....delta_tables import NOON
from ..fake_configs import Clock, DictConfigs, ListJournal, applying, desired, planned

KEY = "connection_creation_rate"
ENTITY = ConfigEntity("c1", "ip", "10.0.0.7")
WEEK = timedelta(days=7)
USED = {"usage_p99": 1e6, "history_s": WEEK.total_seconds()}
SETTLE = timedelta(minutes=30)
BOUNDS = PlanPolicy(limits=LimitBounds(settle=SETTLE), min_history=WEEK)
EVERY = timedelta(minutes=10)


def offending(offence: float | None = 10.0, **others: object) -> DesiredConfig:
    columns = {"entity_type": "ip", "config_key": KEY, "config_value": "4"}
    columns |= {"least_value": 1.0, "observed": offence}
    return desired("10.0.0.7", **(columns | others))


def made(row: DesiredConfig, bounds: PlanPolicy = BOUNDS, ledger: Ledger | None = None) -> Plan:
    return planned(row, bounds=bounds, ledger=ledger or Ledger())


def test_conf_bounds_first_values_and_limits() -> None:
    conf = config.load(overrides=["plan.min_gain=0.2", "plan.min_history_s=60"])
    policy = context.of_plans(conf).policy
    assert policy.limits.min_gain == 0.2
    assert policy.limits.settle == timedelta(minutes=50)
    assert policy.min_history == timedelta(seconds=60)


@cases(
    ("row", "value"),
    ("unlimited: what results ask for", offending(), "4"),
    ("less than somebody else set", offending(prior_value="5"), "4"),
    ("and not more than a step", offending(prior_value="20"), "10"),
    ("never above it", offending(prior_value="3"), None),
    ("a first quota is not below the p99", desired(config_value="25", **USED), "1000000"),
    ("and may leave more room", desired(config_value="2500000", **USED), "2500000"),
    (
        "and never goes below the floor",
        desired(config_value="25", **USED | {"usage_p99": 1.0}),
        "65536",
    ),
    (
        "a raise goes in steps",
        desired(config_value="9000000", prior_value="1000000", direction=RAISE, **USED),
        "2000000",
    ),
    (
        "a limit of a user is not loosened either",
        desired(config_key="producer_ids_rate", config_value="5", prior_value="2"),
        None,
    ),
)
def test_the_value_of_a_row(row: DesiredConfig, value: str | None) -> None:
    changes = made(row).changes
    assert [change.value for change in changes] == ([] if value is None else [value])
    assert all(change.purpose == APPLY for change in changes)


@cases(
    ("row", "why"),
    (
        "an hour of history",
        desired(config_value="25", history_s=3_600.0),
        "its usage is known for 60 min, and plan.min_history_s requires 7 days",
    ),
    ("no usage", desired(config_value="25", history_s=USED["history_s"]), "at its busiest broker"),
    ("an offence of no size", offending(None), "the number of new ids is not known"),
    (
        "a restore could not set Long.MAX",
        offending(prior_value="9223372036854775807"),
        "a restore would fail",
    ),
    (
        "a row without an offence lowers nothing",
        desired(config_value="25", prior_value="1000000", **USED),
        "this row proposes no limit",
    ),
    (
        "also if it says that it does",
        desired(config_value="25", prior_value="1000000", direction=TIGHTEN, **USED),
        "this row proposes no limit",
    ),
    (
        "one that says no direction raises nothing",
        desired(config_value="2000000", prior_value="1000000", **USED),
        "this row proposes no raise",
    ),
    (
        "nor takes the place of a default with more",
        desired(config_value="2500000", quota_in_force=1e6, **USED),
        "this row proposes no raise",
    ),
)
def test_what_is_not_planned(row: DesiredConfig, why: str) -> None:
    plan_made = made(row)
    assert plan_made.changes == ()
    assert why in plan_made.blocked[0].reason


Offend = Callable[[float | None], float]


@dataclass
class Loop:
    """Plan and apply every ten minutes against an offender that reacts to its limit."""

    offend: Offend
    prior: str | None = None
    configs: DictConfigs = field(default_factory=DictConfigs)
    journal: ListJournal = field(default_factory=ListJournal)
    values: list[str | None] = field(default_factory=list)
    purposes: list[str] = field(default_factory=list)
    last_plan: Plan = field(default_factory=lambda: Plan((), ()))
    cycles: int = 0
    more: dict[str, object] = field(default_factory=dict)

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
            rows = [offending(offence, prior_value=self.value, **self.more)] if offence else []
            inputs = dict.fromkeys((REQUESTS, RESULTS, SNAPSHOT), now)
            policy = replace(bounds, inputs_at={**inputs, **bounds.inputs_at})
            self.last_plan = planned(*rows, bounds=policy, ledger=self.journal.ledger, now=now)
            # What is frozen for approval is the same as what is not.
            frozen = frozen_plans.to_changes(frozen_plans.to_rows(self.last_plan, now, "me"))
            writer = applying(self.configs, self.journal, f"r{self.cycles}", Clock(now))
            writer.run("p", frozen)
            written = [change for change in frozen if change.command]
            self.values += [change.value for change in written]
            self.purposes += [change.purpose for change in written]


@pytest.mark.parametrize("prior", [None, "6"])
def test_a_limit_that_does_not_help_is_given_back_and_not_tried_again_for_a_day(
    prior: str | None,
) -> None:
    loop = Loop(lambda _: 10.0, prior)
    loop.run(5)
    assert loop.values == ["4", prior]
    assert loop.purposes == [APPLY, RESTORE]
    assert loop.journal.ledger.owned == {}
    loop.run(140)
    assert len(loop.values) == 2
    assert "a person must speak to the owner of this offender" in loop.last_plan.blocked[0].reason
    loop.run(10)
    assert loop.values[2] == "4"


def test_one_that_helps_stays_while_the_offence_goes_on() -> None:
    loop = Loop(lambda value: 10.0 if value is None else 2.0 * value)
    loop.run(100)
    assert loop.values == ["4", "2", "1"]
    assert loop.purposes == [APPLY] * 3
    (owned,) = loop.journal.ledger.owned.values()
    assert owned.prior_value is None
    assert owned.expires_at is not None
    assert owned.expires_at > NOON + loop.cycles * EVERY, "its lease is renewed"


def test_a_step_that_does_not_help_comes_back_and_what_helps_stays() -> None:
    loop = Loop(lambda value: 10.0 if value is None else 8.0)
    loop.run(100)
    assert loop.values == ["4", "2", "4"]
    assert loop.purposes == [APPLY, APPLY, RESTORE]
    (owned,) = loop.journal.ledger.owned.values()
    assert (owned.prior_value, owned.value) == (None, "4")


def test_nothing_is_renewed_once_it_is_well() -> None:
    loop = Loop(lambda value: 10.0 if value is None else 0.0)
    loop.run(20)
    (owned,) = loop.journal.ledger.owned.values()
    assert loop.values == ["4"]
    assert owned.expires_at is not None
    assert owned.expires_at - owned.since == timedelta(hours=1)


def test_it_comes_back_at_once_when_others_are_there() -> None:
    loop = Loop(lambda _: 10.0, "6")
    loop.run(1)
    loop.more = {"blocked_reason": "another user is there"}
    loop.run(1, replace(BOUNDS, strangers={(ENTITY, KEY): "User:dora"}))
    assert (loop.values, loop.purposes) == (["4", "6"], [APPLY, RESTORE])
    assert loop.journal.ledger.owned == {}
    loop.run(1, replace(BOUNDS, strangers={(ENTITY, KEY): "User:dora"}))
    assert [each.reason for each in loop.last_plan.blocked] == ["another user is there"]


def test_what_somebody_else_set_is_not_given_back() -> None:
    loop = Loop(lambda _: 10.0)
    loop.run(1)
    loop.configs.configs[ENTITY] = {KEY: "50"}
    loop.run(1, replace(BOUNDS, strangers={(ENTITY, KEY): "User:dora"}))
    assert loop.value == "50"


def test_a_lease_that_ended_ends_its_steps() -> None:
    loop = Loop(lambda value: 10.0 if value is None else 2.0 * value)
    loop.run(5)
    assert loop.values == ["4", "2"]
    record = loop.journal.records[-1]
    end = replace(record, purpose=RESTORE, direction=None, observed=None, config_value=None)
    end = replace(end, expires_at=None, event_time=record.event_time + timedelta(minutes=1))
    loop.journal.records.append(end)
    loop.configs.configs[ENTITY] = {}
    assert loop.journal.ledger.owned == {}
    loop.run(1)
    assert loop.values[-1] == "4", "it begins with the first value again"
    (owned,) = loop.journal.ledger.owned.values()
    assert owned.expires_at is not None
    assert owned.expires_at - owned.since == timedelta(hours=2), "a relapse: twice as long"


def test_a_limit_that_is_not_ours_any_more_is_not_given_back() -> None:
    loop = Loop(lambda _: 10.0)
    loop.run(1)
    ledger = replace(loop.journal.ledger, owned={})
    made_later = planned(offending(), bounds=BOUNDS, ledger=ledger, now=NOON + timedelta(hours=1))
    assert made_later.changes == ()
    assert "a plan may set no lower value" in made_later.blocked[0].reason


def test_each_reason_has_words() -> None:
    codes = sentences("limits").keys() - {"history_too_short"}
    assert all(limits.why(code, offending(), BOUNDS.limits) for code in codes)
    assert {limit.FIRST, limit.STEP_DOWN, limit.STEP_UP, limit.STEP_WITHOUT_GAIN} <= codes
    assert {limit.NO_GAIN, limit.EFFECT_PENDING, limit.OFFENCE_UNKNOWN, limit.PAUSED} <= codes
    assert {limit.AT_FLOOR, limit.AT_BOUND, limits.LOWERS, limits.ABOVE_QUOTA} <= codes
    assert {limits.NOT_RESTORABLE, limits.USAGE_UNKNOWN} <= codes


RAISED = ConfigEntity("c1", "user", "mallory")


def _raises(throttled: Callable[[float], float], days: int) -> list[tuple[str, str]]:
    """A plan a day for a user who is throttled by its quota: the values and purposes of writes."""
    rate, journal = "producer_byte_rate", ListJournal()
    configs = DictConfigs({RAISED: {rate: "1000000"}})
    writes = []
    for day in range(days):
        now, value = NOON + day * timedelta(days=1), configs.read(RAISED)[rate]
        row = desired(
            **{"config_value": str(int(float(value) * 1.25)), "prior_value": value, "priority": 30},
            **{"observed": throttled(float(value)), "direction": RAISE, "lease_s": 172_800},
            **USED,
        )
        inputs = dict.fromkeys((REQUESTS, RESULTS, SNAPSHOT), now)
        made = planned(
            row, bounds=replace(BOUNDS, inputs_at=inputs), ledger=journal.ledger, now=now
        )
        applying(configs, journal, f"r{day}", Clock(now)).run("p", made.changes)
        writes += [(change.value, change.purpose) for change in made.changes if change.command]
    return writes


def test_a_raise_that_does_not_help_is_reverted() -> None:
    assert _raises(lambda _: 1e-6, 2) == [("1250000", APPLY), ("1000000", RESTORE)]


def test_a_raise_that_helps_stays_and_may_go_on() -> None:
    # Who takes all that a quota allows moves more with each raise.
    assert _raises(lambda value: 1 / value, 3) == [
        ("1250000", APPLY),
        ("1562500", APPLY),
        ("1953125", APPLY),
    ]


BROKER = ConfigEntity("c1", "broker", "1")
RATE = "leader.replication.throttled.rate"


def _moving(waits: Callable[[float], float | None], cycles: int) -> list[tuple[str | None, str]]:
    """Plans of a move whose rate is halved while clients wait: the values and purposes of writes.

    Where nobody waits, the rate is the one that capacity allows: 80 MB/s.
    """
    configs, journal, writes = DictConfigs({BROKER: {RATE: "80000000"}}), ListJournal(), []
    for cycle in range(cycles):
        now, value = NOON + cycle * EVERY, float(configs.read(BROKER)[RATE])
        offence = waits(value)
        target = 80e6 if offence is None else value / 2
        columns = {"entity_type": "broker", "config_key": RATE, "config_value": str(int(target))}
        columns |= {"prior_value": configs.read(BROKER)[RATE], "lease_s": 7_200, "priority": 5}
        row = desired("1", **columns, observed=offence)
        inputs = dict.fromkeys((REQUESTS, RESULTS, SNAPSHOT), now)
        bounds = replace(BOUNDS, inputs_at=inputs, cooldown=EVERY / 2)
        made = planned(row, bounds=bounds, ledger=journal.ledger, now=now)
        applying(configs, journal, f"r{cycle}", Clock(now)).run("p", made.changes)
        writes += [(change.value, change.purpose) for change in made.changes if change.command]
    return writes


def test_a_rate_is_lowered_while_that_helps_clients() -> None:
    assert _moving(lambda value: value / 10e6 if value > 10e6 else None, 3) == [
        ("40000000", APPLY),
        ("20000000", APPLY),
        ("10000000", APPLY),
    ]


def test_a_move_is_not_slowed_for_clients_that_wait_for_another_reason() -> None:
    assert _moving(lambda _: 4.0, 140) == [("40000000", APPLY), ("80000000", RESTORE)]


def test_a_rate_that_rose_since_is_judged_anew() -> None:
    """Clients wait for the move, then for nothing, then for the move again, and longer."""
    times = iter([4.0, 2.0, None, 8.0, 3.0])
    assert [value for value, _ in _moving(lambda _: next(times), 5)] == [
        *("40000000", "20000000", "80000000", "40000000", "20000000"),
    ]
