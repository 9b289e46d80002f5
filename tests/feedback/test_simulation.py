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
_SURRENDER = 6
"""Decisions after which a limit without effect has ended. Each takes two dead times."""


def played(seed: int, plants: list[str], **others: object) -> Simulation:
    dice = random.Random(seed)
    offenders = [offender(dice, plant, n, CYCLES) for n, plant in enumerate(plants)]
    return Simulation(offenders, dice, **others)  # type: ignore[arg-type]


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


def test_what_a_person_released_is_planned_again_until_somebody_alters_it() -> None:
    simulation = played(1, ["right"])
    (one,) = simulation.offenders
    one.inherited, one.usage = None, {1: 1e7}
    value = str(int(one.p99))
    simulation.cluster.by_hand((one.entity, KEY), value, simulation.now)
    simulation.now += CYCLE
    simulation.run(3)
    assert simulation.writes == []
    simulation.journal.add([released(one, simulation)])
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
