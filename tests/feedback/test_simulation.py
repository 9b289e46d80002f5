"""The loop against plants, operators and attackers: nobody innocent is harmed, all is given back.

Each run of the tests draws new seeds. A failure names its seed: put it into SEEDS to run it again.
"""

import random
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from quotaflow.pipelines.feedback.configs.change import APPLY, SET
from quotaflow.pipelines.feedback.ledger.ledger import DONE, RELEASED, Record

from ..pipelines.feedback.fake_configs import forged
from . import summary
from .simulator import (
    CYCLE,
    KINDS,
    PERIOD,
    PLANTS,
    Offender,
    Simulation,
    offender,
)

SEEDS = [random.SystemRandom().randrange(2**32) for _ in range(2)]
CYCLES, CALM = 60, 110
"""Cycles with offences, and after them: longer than the longest lease of ten hours of relapses."""
GIVEN_BACK = 30
"""Cycles in which the leases of twelve cycles end."""
_SETTLE = 2 + PERIOD
"""Cycles after which the effect of a limit is judged."""


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
    assert all(simulation.value(one) is None for one in simulation.offenders)
    assert simulation.ledger.owned == {}
    assert simulation.writes


@pytest.mark.parametrize("plant", ["no effect", "worse when limited"])
@pytest.mark.parametrize("seed", SEEDS[:1])
def test_a_limit_without_effect_surrenders_and_is_not_tried_again_for_a_day(
    seed: int, plant: str
) -> None:
    simulation = played(seed, [plant])
    (one,) = simulation.offenders
    simulation.run(CYCLES)
    set_at, back_at = (w.at for w in simulation.writes)
    assert simulation.value(one) is None
    assert back_at - set_at == _SETTLE * CYCLE


@pytest.mark.parametrize("seed", SEEDS[:1])
def test_a_limit_that_helps_goes_on_in_steps_and_never_below_the_floor(seed: int) -> None:
    one = Offender(
        "10.0.0.7", "at three brokers", 150.0, PLANTS["at three brokers"], CYCLES, quota=8
    )
    simulation = Simulation([one], random.Random(seed), is_signed=False)
    simulation.run(CYCLES)
    assert changed(simulation, one)[:3] == ["8", "4", "2"]


def test_a_limit_ends_at_once_when_another_user_comes_to_the_address() -> None:
    one = Offender("10.0.0.7", "steady", 20.0, PLANTS["steady"], CYCLES)
    simulation = Simulation([one], random.Random(1), is_signed=False)
    simulation.run(4)
    assert simulation.value(one) == "1"
    one.stranger_comes = simulation.cycle
    simulation.run(1)
    assert simulation.value(one) is None
    simulation.run(20)
    assert changed(simulation, one) == ["1", None]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_limit_has_the_same_rule(kind: str) -> None:
    first = 2 if kind == "broker" else 4  # half of the day that Kafka sets
    for plant, values in (("steady", [first, None, first]), ("no effect", [first, None])):
        one = Offender("10.0.0.7", plant, 20.0, PLANTS[plant], CYCLES, quota=first, kind=kind)
        simulation = Simulation([one], random.Random(1), is_signed=False)
        simulation.run(CYCLES)
        actual = [value and int(float(value)) // one.unit for value in changed(simulation, one)]
        assert actual[:3] == values
        simulation.run(CALM)
        assert simulation.ledger.owned == {}


def test_one_that_flaps_leaves_room_for_others() -> None:
    simulation = played(1, ["flapping", *["steady"] * 19])
    simulation.run(3 * CYCLES)
    assert {w.change.entity for w in simulation.writes} == {
        one.entity for one in simulation.offenders
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_the_hand_of_an_operator_survives_every_cycle(seed: int) -> None:
    simulation = played(seed, ["steady", "noisy", "no effect", "worse when limited"])
    dice = random.Random(seed)

    def operator(now: Simulation) -> None:
        if dice.random() < 0.2:
            one = dice.choice(now.offenders)
            value = dice.choice([None, str(dice.randint(1, 100))])
            now.cluster.by_hand(one.key, value, now.now + timedelta(seconds=1))
            now.now += timedelta(seconds=2)

    simulation.run(CYCLES + CALM, operator)
    for (entity, key), value in simulation.cluster.of_people.items():
        assert simulation.cluster.configs.get(entity, {}).get(key) == value


def attack(dice: random.Random, simulation: Simulation) -> None:
    """What somebody who can write the tables may do to config_changes."""
    rows = simulation.journal.records
    one = dice.choice(simulation.offenders)
    now = simulation.value(one)
    claim = forged(one.entity, one.config_key, now, dice.choice(["1", None, "9000000000"]))
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
    simulation = played(seed, ["steady", "noisy"], is_signed=True)
    simulation.run(6)
    dice = random.Random(seed)
    simulation.run(6, lambda now: attack(dice, now))
    for one in simulation.offenders:
        one.ends = simulation.cycle
    simulation.run(GIVEN_BACK)
    # Each write was checked when it was made. What was ours comes back by the leases.
    assert all(simulation.value(one) is None for one in simulation.offenders)
    assert simulation.book.ledger.owned == {}


@pytest.mark.parametrize("seed", SEEDS[:1])
def test_of_two_deployments_one_changes_a_config_at_a_time(seed: int) -> None:
    first = played(seed, ["steady", "noisy", "no effect"], is_signed=True)
    second = played(seed, ["steady", "noisy", "no effect"], is_signed=True, deployment="two")
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
    assert first.writes or second.writes
    assert all(first.value(one) is None for one in first.offenders)


def test_what_a_person_released_is_planned_again_until_somebody_alters_it() -> None:
    one = Offender("10.0.0.7", "steady", 20.0, PLANTS["steady"], CYCLES)
    simulation = Simulation([one], random.Random(1), is_signed=False)
    simulation.cluster.by_hand(one.key, "4", simulation.now)
    simulation.now += CYCLE
    simulation.run(3)
    assert simulation.writes == []
    simulation.store().add([released(one, simulation)])
    del simulation.cluster.of_people[one.key]
    simulation.now += CYCLE
    simulation.run(2)
    assert changed(simulation, one) != []


def released(one: Offender, simulation: Simulation) -> Record:
    """The record of `quotaflow release`."""
    return Record(
        event_time=simulation.now,
        run_id="release",
        number=0,
        plan_id="release",
        change_id="release",
        purpose="release",
        step=RELEASED,
        entity=one.entity,
        config_key=one.config_key,
        operation="release",
        config_value=simulation.value(one),
        reason="a person said so",
        evidence_table="",
        evidence_key="",
    )


@pytest.mark.parametrize("seed", SEEDS[:1])
def test_many_offenders_stay_within_the_budget_of_a_plan_and_a_day(seed: int) -> None:
    simulation = played(seed, ["steady"] * 60)
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
        assert all(simulation.value(one) is None for one in simulation.offenders), seed


@pytest.mark.parametrize("seed", SEEDS[:1])
@pytest.mark.parametrize("jump", [timedelta(hours=-3), timedelta(hours=3), timedelta(days=2)])
def test_a_clock_that_jumps_leaves_nothing_behind(seed: int, jump: timedelta) -> None:
    simulation = played(seed, ["steady", "no effect"])
    simulation.run(12)
    simulation.now += jump
    simulation.run(3)
    simulation.now -= jump
    simulation.run(CYCLES + CALM + int(abs(jump) / CYCLE))
    assert simulation.ledger.owned == {}
    assert all(simulation.value(one) is None for one in simulation.offenders)


def test_the_same_seed_gives_the_same_run() -> None:
    runs = [played(7, [*PLANTS]) for _ in range(2)]
    for each in runs:
        each.run(CYCLES)
    assert runs[0].writes
    assert runs[0].journal.records == runs[1].journal.records
    assert {r.step for r in runs[0].journal.records} >= {DONE}


@pytest.mark.parametrize(
    ("plants", "crowds"),
    [
        (("no effect",), (1,)),
        pytest.param(PLANTS, summary.CROWDS, marks=pytest.mark.faults),
    ],
    ids=["a row of each", "all rows"],
)
def test_the_page_has_the_tables_of_the_simulation(
    plants: Iterable[str], crowds: Iterable[int]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "feedback.md").read_text(encoding="utf-8")
    made = {*summary.lines(plants), *summary.crowd_lines(crowds)}
    assert made - {*page.splitlines()} == set()
