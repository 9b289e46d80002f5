"""The step of a quota: tables of cases, and plants that react in every way."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules.quota_step import (
    AT_FLOOR,
    EFFECT_PENDING,
    GIVE_BACK,
    HISTORY_TOO_SHORT,
    NO_GAIN_IN_ALL,
    NOTHING_TO_GIVE_BACK,
    OFFENCE_UNKNOWN,
    PAUSED_WITHOUT_GAIN,
    START,
    STEP_DOWN,
    STEP_WITHOUT_GAIN,
    TIGHTEN,
    USAGE_UNKNOWN,
    WELL,
    WELL_TOO_SHORT,
    OffenderQuota,
    QuotaAdvice,
    QuotaUse,
    QuotaWrite,
    StepLimits,
    floor,
    give_back,
    steps,
    tighten,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DEAD = timedelta(minutes=20)
WEEK_S = 7 * 86_400.0
LIMITS = StepLimits(min_value=65_536, is_whole=True, dead_time=DEAD)
USE = QuotaUse(p99=1_000_000, median=400_000, history_s=WEEK_S)


def write(
    minutes_ago: float, before: float | None, after: float | None, **others: object
) -> object:
    row = {"offence": 10.0, "direction": TIGHTEN} | others
    return QuotaWrite(NOW - timedelta(minutes=minutes_ago), before, after, **row)  # type: ignore[arg-type]


FIRST = write(90, None, 1_000_000)
SECOND = write(45, 1_000_000, 800_000)


@pytest.mark.parametrize(
    ("applied", "use", "offence", "writes", "advice"),
    [
        pytest.param(None, USE, 10, [], (TIGHTEN, 1e6, START), id="unlimited: at the p99"),
        pytest.param(5e6, USE, 10, [], (TIGHTEN, 1e6, START), id="a wide quota: at the p99"),
        pytest.param(
            1e6, USE, 10, [], (TIGHTEN, 8e5, STEP_DOWN), id="a quota at the p99: a fifth less"
        ),
        pytest.param(
            5e5, USE, 10, [], (TIGHTEN, 4e5, STEP_DOWN), id="one that limits it: a fifth less"
        ),
        pytest.param(
            1.5e5,
            replace(USE, p99=3e6),
            10,
            [],
            (None, None, AT_FLOOR),
            id="never above the quota that applies, though that is below the floor",
        ),
        pytest.param(
            None,
            replace(USE, p99=1, median=1),
            10,
            [],
            (TIGHTEN, 65_536, START),
            id="an idle entity: the absolute floor",
        ),
        pytest.param(
            2.2e5, USE, 10, [], (TIGHTEN, 2e5, STEP_DOWN), id="half of the median is the floor"
        ),
        pytest.param(
            None,
            replace(USE, history_s=WEEK_S - 1),
            10,
            [],
            (None, None, HISTORY_TOO_SHORT),
            id="a second less than a week",
        ),
        pytest.param(
            None, QuotaUse(None, None, None), 10, [], (None, None, HISTORY_TOO_SHORT), id="no rows"
        ),
        pytest.param(
            None,
            QuotaUse(None, None, WEEK_S),
            10,
            [],
            (None, None, USAGE_UNKNOWN),
            id="a week without usage of this kind",
        ),
        pytest.param(
            None, USE, None, [], (None, None, OFFENCE_UNKNOWN), id="an offence of no size"
        ),
        pytest.param(None, USE, float("nan"), [], (None, None, OFFENCE_UNKNOWN), id="not a number"),
        pytest.param(
            1e6,
            USE,
            10,
            [write(39, None, 1e6)],
            (None, None, EFFECT_PENDING),
            id="less than two dead times after a write",
        ),
        pytest.param(
            1e6, USE, 10, [write(41, None, 1e6)], (TIGHTEN, 8e5, STEP_DOWN), id="two dead times"
        ),
        pytest.param(
            8e5,
            USE,
            9.5,
            [FIRST, SECOND],
            (GIVE_BACK, None, NO_GAIN_IN_ALL),
            id="no effect: all is given back",
        ),
        pytest.param(
            8e5, USE, 20, [FIRST, SECOND], (GIVE_BACK, None, NO_GAIN_IN_ALL), id="it makes it worse"
        ),
        pytest.param(
            8e5, USE, 8, [FIRST, SECOND], (TIGHTEN, 6.4e5, STEP_DOWN), id="a fifth less offence"
        ),
        pytest.param(
            6.4e5,
            USE,
            7.9,
            [write(120, None, 1e6), write(90, 1e6, 8e5), write(45, 8e5, 6.4e5, offence=8.0)],
            (GIVE_BACK, 8e5, STEP_WITHOUT_GAIN),
            id="the second step alone had no gain",
        ),
        pytest.param(
            8e5,
            USE,
            8,
            [
                write(150, None, 1e6),
                write(120, 1e6, 8e5),
                write(90, 8e5, 6.4e5, offence=8.0),
                write(45, 6.4e5, 8e5, offence=7.9, direction=GIVE_BACK),
            ],
            (None, None, PAUSED_WITHOUT_GAIN),
            id="not again for a day",
        ),
        pytest.param(
            None,
            USE,
            10,
            [write(24 * 60 - 1, 8e5, None, direction=GIVE_BACK)],
            (None, None, PAUSED_WITHOUT_GAIN),
            id="nor after all was given back",
        ),
        pytest.param(
            None,
            USE,
            10,
            [write(24 * 60 + 1, 8e5, None, direction=GIVE_BACK)],
            (TIGHTEN, 1e6, START),
            id="after a day",
        ),
        pytest.param(
            None,
            USE,
            10,
            [SECOND, write(44, 8e5, None, direction=GIVE_BACK, offence=None)],
            (TIGHTEN, 1e6, START),
            id="after a lease ended",
        ),
        pytest.param(
            65_536,
            replace(USE, p99=1, median=1),
            10,
            [write(60, None, 65_536)],
            (GIVE_BACK, None, NO_GAIN_IN_ALL),
            id="a first value at the floor does not stay without effect",
        ),
        pytest.param(
            2e5,
            USE,
            5,
            [FIRST, write(45, 1e6, 2e5)],
            (None, None, AT_FLOOR),
            id="at the floor with gain: it stays",
        ),
    ],
)
def test_the_next_step(
    applied: float | None,
    use: QuotaUse,
    offence: float | None,
    writes: Sequence[QuotaWrite],
    advice: tuple[str | None, float | None, str],
) -> None:
    quota = OffenderQuota(applied, use, offence, writes)
    assert tighten(quota, LIMITS, NOW) == QuotaAdvice(*advice)


@pytest.mark.parametrize(
    ("well_min", "writes", "advice"),
    [
        (60, [FIRST, SECOND], (GIVE_BACK, 1e6, WELL)),
        (60, [FIRST], (GIVE_BACK, None, WELL)),
        (60, [write(60, 5e6, 1e6)], (GIVE_BACK, 5e6, WELL)),
        (39, [FIRST, SECOND], (None, None, WELL_TOO_SHORT)),
        (60, [FIRST, write(39, 1e6, 8e5)], (None, None, EFFECT_PENDING)),
        (60, [], (None, None, NOTHING_TO_GIVE_BACK)),
        (
            60,
            [FIRST, SECOND, write(41, 8e5, 1e6, direction=GIVE_BACK, offence=None)],
            (GIVE_BACK, None, WELL),
        ),
    ],
    ids=[
        "a step",
        "the last step removes it",
        "or sets the value before",
        "not well for long",
        "a write a moment ago",
        "nothing is ours",
        "step by step",
    ],
)
def test_what_is_given_back_when_it_is_well(
    well_min: float, writes: Sequence[QuotaWrite], advice: tuple[str | None, float | None, str]
) -> None:
    assert give_back(timedelta(minutes=well_min), writes, LIMITS, NOW) == QuotaAdvice(*advice)


Offend = Callable[[float | None, int], float]
"""The offence under a quota (null: none) in a cycle; 0: none."""
EVERY = timedelta(minutes=10)
NEARLY = 1e-6


@dataclass
class Plant:
    """An entity whose offence reacts to its quota, and the loop on it. `prior`: its own quota."""

    offend: Offend
    use: QuotaUse
    prior: float | None
    limits: StepLimits
    value: float | None = None
    writes: list[QuotaWrite] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    useless: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        self.value = self.prior

    def run(self, cycles: int) -> None:
        well = timedelta(0)
        for cycle in range(cycles):
            now = NOW + cycle * EVERY
            offence = self.offend(self.value, cycle)
            well = timedelta(0) if offence > 0 else well + EVERY
            if offence > 0:
                quota = OffenderQuota(self.value, self.use, offence, self.writes)
                advice = tighten(quota, self.limits, now)
            else:
                advice = give_back(well, self.writes, self.limits, now)
            self._check(advice)
            if advice.direction is not None:
                measured = offence if offence > 0 else None
                made = QuotaWrite(now, self.value, advice.value, measured, advice.direction)
                self.writes.append(made)
                self.reasons.append(advice.reason)
                self.value = advice.value
            if self.value != self.prior and offence >= self.offend(self.prior, cycle) > 0:
                self.useless += EVERY

    def _check(self, advice: QuotaAdvice) -> None:
        if advice.direction != TIGHTEN:
            return
        assert advice.value is not None
        least = floor(self.use, self.limits)
        assert advice.value >= least - NEARLY
        if self.value is not None:
            assert advice.value < self.value
        if self.value is not None and advice.reason == STEP_DOWN:
            assert advice.value >= self.value * 0.8 - NEARLY
        if advice.reason == START:
            assert self.use.p99 is not None
            assert advice.value >= self.use.p99 - NEARLY


def no_effect(_: float | None, __: int) -> float:
    return 10.0


def worse(value: float | None, _: int) -> float:
    return 10.0 if value is None else 10.0 * max(1.0, 1e6 / value) ** 2


def proportional(value: float | None, _: int) -> float:
    return 10.0 if value is None else 10.0 * min(1.0, value / 1e6)


@pytest.mark.parametrize("offend", [no_effect, worse])
def test_an_actuator_that_does_not_help_is_given_back_after_one_step(offend: Offend) -> None:
    plant = Plant(offend, USE, None, LIMITS)
    plant.run(13)
    assert plant.reasons == [START, STEP_DOWN, NO_GAIN_IN_ALL]
    assert plant.value is None


def test_in_a_day_it_costs_four_dead_times() -> None:
    plant = Plant(worse, USE, None, LIMITS)
    plant.run(3 * 144)
    assert plant.useless <= 3 * (4 * DEAD + EVERY)


def test_an_actuator_that_helps_goes_to_the_floor_and_stays() -> None:
    plant = Plant(proportional, USE, None, LIMITS)
    plant.run(200)
    assert set(plant.reasons) == {START, STEP_DOWN}
    assert plant.value == floor(USE, LIMITS)


def test_what_helped_is_given_back_step_by_step_once_the_offence_ends() -> None:
    def until_cycle_12(value: float | None, cycle: int) -> float:
        return proportional(value, cycle) if cycle <= 12 else 0.0

    plant = Plant(until_cycle_12, USE, None, LIMITS)
    plant.run(60)
    values = [each.after for each in plant.writes]
    assert values == [1e6, 8e5, 6.4e5, 5.12e5, 6.4e5, 8e5, 1e6, None]


@st.composite
def plants(draw: st.DrawFn) -> Plant:
    """Offences that come and go, and react to the quota in any way."""
    history = draw(st.lists(st.floats(0, 100), min_size=5, max_size=60))
    slopes = draw(st.lists(st.floats(-2, 1), min_size=1, max_size=5))
    p99 = draw(st.floats(0, 1e9))
    is_whole = draw(st.booleans())
    limits = replace(
        LIMITS,
        is_whole=is_whole,
        min_value=65_536 if is_whole else 1,
        dead_time=timedelta(minutes=draw(st.integers(10, 60))),
    )

    def offend(value: float | None, cycle: int) -> float:
        share = 1.0 if value is None else min(1.0, value / max(p99, 1))
        slope = slopes[cycle % len(slopes)]
        return max(0.0, history[cycle % len(history)] * (1 - slope * (1 - share)))

    use = QuotaUse(p99, draw(st.floats(0, 1)) * p99, WEEK_S)
    return Plant(offend, use, draw(st.none() | st.floats(1, 1e9)), limits)


@given(plants())
def test_whatever_a_plant_does_nothing_is_loosened_and_nothing_is_left_behind(
    plant: Plant,
) -> None:
    plant.run(150)
    prior, limits = plant.prior, plant.limits
    for each in plant.writes:
        assert each.after is None or prior is None or each.after <= prior
        assert each.after is not None or prior is None
    value, writes = plant.value, list(plant.writes)
    for nth in range(40):
        now = NOW + 150 * EVERY + nth * limits.settle_time
        advice = give_back(timedelta(days=1), writes, limits, now)
        if advice.direction is not None:
            writes.append(QuotaWrite(now, value, advice.value, None, GIVE_BACK))
            value = advice.value
    assert value == prior


@given(
    offences=st.lists(st.floats(10, 1e6), min_size=1, max_size=30),
    prior=st.none() | st.floats(1e5, 1e9),
    p99=st.floats(0, 1e8),
    median=st.floats(0, 1),
)
def test_an_offence_that_never_falls_ends_all_steps_within_six_decisions(
    offences: list[float], prior: float | None, p99: float, median: float
) -> None:
    rising = sorted(offences)

    def never_falls(_: float | None, cycle: int) -> float:
        return rising[min(cycle, len(rising) - 1)]

    plant = Plant(never_falls, QuotaUse(p99, median * p99, WEEK_S), prior, LIMITS)
    plant.run(140)
    assert plant.value == prior
    assert len(plant.writes) <= 3
    assert plant.useless <= 4 * DEAD + 2 * EVERY


def test_a_first_value_alone_is_one_step() -> None:
    assert steps([FIRST]) == [FIRST]
