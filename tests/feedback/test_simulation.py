"""The loop against plants, operators and attackers: nobody innocent is harmed, all is given back.

Each run of the tests draws new seeds. A failure names its seed: put it into SEEDS to run it again.
"""

import random
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from quotaflow.pipelines.feedback.change import APPLY, SET
from quotaflow.pipelines.feedback.ledger import DONE, RELEASED, Record

from ..pipelines.feedback.fake_configs import forged
from . import summary
from .simulator import (
    CYCLE,
    DAY,
    KEY,
    PLANTS,
    Offender,
    Simulation,
    offender,
)

SEEDS = [random.SystemRandom().randrange(2**32) for _ in range(6)]
CYCLES, CALM = 60, 40
"""Cycles with offences, and after them: long enough to give back in steps, and by lease."""
GIVEN_BACK = 24
"""Cycles in which the steps of twelve cycles are given back."""
_SURRENDER = 6
"""Decisions after which a limit without effect has ended. Each takes two dead times."""


def played(seed: int, plants: list[str], **others: object) -> Simulation:
    dice = random.Random(seed)
    offenders = [offender(dice, plant, n, CYCLES) for n, plant in enumerate(plants)]
    options = {"is_signed": False} | others
    return Simulation(offenders, dice, **options)  # type: ignore[arg-type]


def changed(simulation: Simulation, one: Offender) -> list[str | None]:
    """The values that the product gave the offender's quota, in order."""
    return [w.after for w in simulation.writes if w.change.entity == one.entity]


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_plants_do_everything_is_given_back(seed: int) -> None:
    simulation = played(seed, [*PLANTS] * 3)
    simulation.run(CYCLES + CALM)
    assert {one.name: simulation.value(one) for one in simulation.offenders} == dict.fromkeys(
        (one.name for one in simulation.offenders), None
    )
    assert simulation.ledger.owned == {}
    assert simulation.writes


@pytest.mark.parametrize("plant", ["no effect", "worse when limited"])
@pytest.mark.parametrize("seed", SEEDS[:3])
def test_a_limit_without_effect_surrenders_and_is_not_tried_again_for_a_day(
    seed: int, plant: str
) -> None:
    simulation = played(seed, [plant])
    (one,) = simulation.offenders
    simulation.run(CYCLES)
    first = [w.at for w in simulation.writes]
    if not first:  # its quota is at its floor from the beginning
        return
    assert simulation.value(one) is None
    per_decision = 2 * 2  # cycles: two dead times of two cycles each
    assert simulation.limited[one.name] <= _SURRENDER * per_decision
    assert simulation.writes[-1].at - first[0] <= _SURRENDER * per_decision * CYCLE
    assert simulation.writes[-1].at - first[0] < DAY


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_a_limit_that_helps_goes_on_and_never_below_the_floor(seed: int) -> None:
    simulation = played(seed, ["right"])
    (one,) = simulation.offenders
    one.offence = 100.0  # so it offends at its floor too, and nothing is given back
    simulation.run(CYCLES)
    values = [float(value) for value in changed(simulation, one) if value is not None]
    assert all(value >= one.floor for value in values)
    assert values == sorted(values, reverse=True)
    if values:
        assert all(new >= 0.8 * old - 1 for old, new in pairwise(values))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_hand_of_an_operator_survives_every_cycle(seed: int) -> None:
    simulation = played(seed, ["right", "noisy", "no effect", "worse when limited"])
    dice = random.Random(seed)

    def operator(now: Simulation) -> None:
        if dice.random() < 0.2:
            one = dice.choice(now.offenders)
            value = dice.choice([None, str(int(one.p99 * dice.uniform(0.1, 10.0)))])
            now.cluster.by_hand((one.entity, KEY), value, now.now + timedelta(seconds=1))
            now.now += timedelta(seconds=2)

    simulation.run(CYCLES + CALM, operator)
    for (entity, key), value in simulation.cluster.of_people.items():
        assert simulation.cluster.configs.get(entity, {}).get(key) == value


def attack(dice: random.Random, simulation: Simulation) -> None:
    """What somebody who can write the tables may do to config_changes."""
    rows = simulation.journal.records
    one = dice.choice(simulation.offenders)
    now = simulation.value(one)
    claim = forged(one.entity, KEY, now, dice.choice(["1", None, "9000000000"]))
    claim = replace(claim, event_time=simulation.now - timedelta(hours=2))
    if rows and dice.random() < 0.5:
        n = dice.randrange(len(rows))
        rows[n] = replace(rows[n], prior_value="1", config_value=dice.choice(["1", now]))
    signed = {"sequence": dice.randrange(100), "deployment": "one", "mac": "0" * 64}
    rows.append(dice.choice([claim, replace(claim, **signed), *rows[-1:]]))  # type: ignore[arg-type]
    if dice.random() < 0.3:
        rows.pop(dice.randrange(len(rows)))


@pytest.mark.parametrize("seed", SEEDS[:1])
def test_a_writer_of_tables_can_stop_changes_and_not_make_one(seed: int) -> None:
    simulation = played(seed, ["right", "noisy"], is_signed=True)
    simulation.run(6)
    dice = random.Random(seed)
    simulation.run(6, lambda now: attack(dice, now))
    for one in simulation.offenders:
        one.ends = simulation.cycle
    simulation.run(GIVEN_BACK)
    # Each write was checked when it was made. What was ours comes back by the leases.
    assert {simulation.value(one) for one in simulation.offenders} == {None}
    assert simulation.book.ledger.owned == {}


@pytest.mark.parametrize("seed", SEEDS[:1])
def test_of_two_deployments_one_changes_a_config_at_a_time(seed: int) -> None:
    first = played(seed, ["right", "noisy", "no effect"], is_signed=True)
    second = played(seed, ["right", "noisy", "no effect"], is_signed=True, deployment="two")
    second.cluster, second.topic = first.cluster, first.topic
    for _ in range(12):
        for each in random.Random(f"{seed} {first.cycle}").sample([first, second], 2):
            each.step()
            both = [set(each.book.ledger.owned) for each in (first, second)]
            assert not both[0] & both[1]
    for each in (first, second):
        for one in each.offenders:
            one.ends = first.cycle
    for _ in range(GIVEN_BACK):
        first.step()
        second.step()
    assert first.writes
    assert {first.value(one) for one in first.offenders} == {None}


def test_what_a_person_released_is_planned_again_until_somebody_alters_it() -> None:
    simulation = played(1, ["right"])
    (one,) = simulation.offenders
    one.inherited, one.usage = None, {1: 1e7}
    value = str(int(one.p99))
    simulation.cluster.by_hand((one.entity, KEY), value, simulation.now)
    simulation.now += CYCLE
    simulation.run(3)
    assert simulation.writes == []
    simulation.store().add([released(one, simulation)])
    del simulation.cluster.of_people[one.entity, KEY]
    simulation.now += CYCLE
    simulation.run(2)
    assert changed(simulation, one) != []


def released(one: Offender, simulation: Simulation) -> Record:
    """The record of `quotaflow release`."""
    template = Record(
        event_time=simulation.now,
        run_id="release",
        number=0,
        plan_id="release",
        change_id="release",
        purpose="release",
        step=RELEASED,
        entity=one.entity,
        config_key=KEY,
        operation="release",
        operand=None,
        prior_value=None,
        config_value=simulation.value(one),
        expires_at=None,
        reason="a person said so",
        evidence_table="",
        evidence_key="",
    )
    return replace(template, event_time=simulation.now)


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_many_offenders_stay_within_the_budget_of_a_plan_and_a_day(seed: int) -> None:
    simulation = played(seed, ["right"] * 60)
    simulation.run(CYCLES)  # each write is checked when it is made
    applied = [w for w in simulation.writes if w.change.purpose == APPLY]
    assert applied[0].at < applied[1].at  # the first alone: its effect is watched
    assert {w.change.operation.name for w in applied} == {SET}


@pytest.mark.faults
@pytest.mark.parametrize("first", range(0, 200, 10))
def test_hundreds_of_runs_give_everything_back(first: int) -> None:
    for seed in range(first, first + 10):
        simulation = played(seed, [*PLANTS] * 2)
        simulation.run(CYCLES + CALM)
        assert simulation.ledger.owned == {}, seed
        assert {simulation.value(one) for one in simulation.offenders} == {None}, seed


@pytest.mark.parametrize("seed", SEEDS[:3])
@pytest.mark.parametrize("jump", [timedelta(hours=-3), timedelta(hours=3), timedelta(days=2)])
def test_a_clock_that_jumps_leaves_nothing_behind(seed: int, jump: timedelta) -> None:
    simulation = played(seed, ["right", "no effect"])
    simulation.run(12)
    simulation.now += jump
    simulation.run(3)
    simulation.now -= jump
    simulation.run(CYCLES + CALM + int(abs(jump) / CYCLE))
    assert simulation.ledger.owned == {}
    assert [simulation.value(one) for one in simulation.offenders] == [None, None]


def test_the_same_seed_gives_the_same_run() -> None:
    runs = [played(7, [*PLANTS]) for _ in range(2)]
    for each in runs:
        each.run(CYCLES)
    assert runs[0].writes
    assert runs[0].journal.records == runs[1].journal.records
    assert {r.step for r in runs[0].journal.records} >= {DONE}


def test_the_page_has_the_table_of_the_simulation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "feedback.md").read_text(encoding="utf-8")
    assert "\n".join(summary.lines()) in page
