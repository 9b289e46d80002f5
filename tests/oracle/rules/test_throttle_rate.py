"""The rate of a replication throttle: what no advice does, and hours of load under it."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules import throttle_rate
from quotaflow.udfs.rules.throttle_rate import RatePolicy

from .throttle_rate import CurrentRate, Demand, advise

MB = 1e6
BOUNDS = RatePolicy()


RATES = st.floats(0, 1e9)


@given(
    given_demand=st.builds(Demand, RATES, RATES, RATES, st.booleans()),
    at=st.builds(CurrentRate, st.floats(1, 1e9), st.floats(0, 1e5)),
)
def test_no_advice_starves_replication_leaps_or_takes_what_is_not_there(
    given_demand: Demand, at: CurrentRate
) -> None:
    advice = advise(given_demand, at, BOUNDS)
    assert given_demand.capacity is not None
    left, least = (
        given_demand.capacity - given_demand.other,
        max(given_demand.floor, throttle_rate.MIN_RATE),
    )
    if advice.rate is None:
        assert least > left
        return
    assert advice.rate >= least
    assert advice.rate <= max(at.rate, least) * BOUNDS.max_step_factor
    if advice.rate > at.rate:
        assert advice.rate <= max(BOUNDS.share * left, least)
    if advice.rate < at.rate:
        assert advice.rate >= at.rate / BOUNDS.max_step_factor
        assert not given_demand.are_clients_healthy or at.rate_age_s >= BOUNDS.cooldown_s


@dataclass
class Seen:
    """What a simulated broker went through."""

    rates: list[float]
    changes: int
    turns: int
    short_s: float


STEP_S = 60
BUSIEST_OF_S = 600
Load = Callable[[float], float]


def simulate(other: Load, written: Load, seconds: int, capacity: float = 100 * MB) -> Seen:
    """A broker's hours: every minute the rule sees what a minute of tables would tell it.

    Clients suffer while the broker carries over 97 % of its capacity.
    """
    rate, rate_age_s, felt = 10 * MB, 0.0, capacity
    seen = Seen([rate], 0, 0, 0.0)
    direction = 0
    for now_s in range(0, seconds, STEP_S):
        carried = other(now_s) + rate
        are_well = carried <= 0.97 * capacity
        felt = felt if are_well else min(felt, carried)
        at = CurrentRate(rate, rate_age_s)
        busiest = max(other(max(now_s - back, 0)) for back in range(0, BUSIEST_OF_S, STEP_S))
        advice = advise(Demand(felt, busiest, written(now_s), are_well), at, BOUNDS)
        seen.short_s += STEP_S * (rate < written(now_s))
        if advice.rate is not None and advice.rate != rate:
            turned = math.copysign(1, advice.rate - rate)
            seen.turns += turned == -direction
            seen.changes += 1
            rate, rate_age_s, direction = advice.rate, 0.0, int(turned)
        else:
            rate_age_s += STEP_S
        seen.rates.append(rate)
    return seen


def noisy(load: Load, share: float, seed: int) -> Load:
    """A load with noise of its own at each minute, the same at each call."""
    return lambda now_s: load(now_s) * (1 + share * random.Random(f"{seed} {now_s}").uniform(-1, 1))


HOURS = 3_600


def test_a_constant_load_is_settled_on_and_left_alone() -> None:
    seen = simulate(lambda _: 40 * MB, lambda _: 5 * MB, 6 * HOURS)
    assert seen.rates[-1] == pytest.approx(54 * MB)
    assert (seen.turns, seen.short_s) == (0, 0)
    assert seen.changes <= 4
    assert len(set(seen.rates[60:])) == 1


@pytest.mark.parametrize("seed", range(5))
def test_noise_does_not_make_it_swing(seed: int) -> None:
    seen = simulate(noisy(lambda _: 40 * MB, 0.08, seed), lambda _: 5 * MB, 12 * HOURS)
    assert seen.changes <= 5
    assert seen.turns <= 1
    assert seen.short_s == 0


def test_a_day_of_load_is_followed() -> None:
    def day(now_s: float) -> float:
        return (50 + 30 * math.sin(2 * math.pi * now_s / (24 * HOURS))) * MB

    seen = simulate(noisy(day, 0.03, 1), lambda _: 4 * MB, 48 * HOURS)
    over = [day(n * STEP_S) + rate > 1.02 * 100 * MB for n, rate in enumerate(seen.rates[:-1])]
    assert sum(over) * STEP_S < 600
    assert seen.short_s == 0
    assert seen.turns <= 6
    assert max(seen.rates) > 60 * MB
    assert min(seen.rates[120:]) < 20 * MB


def test_a_load_that_leaps_is_given_way_to_at_once() -> None:
    seen = simulate(lambda s: (30 if s < 2 * HOURS else 85) * MB, lambda _: 3 * MB, 4 * HOURS)
    minutes = range(2 * HOURS // STEP_S, 2 * HOURS // STEP_S + 5)
    assert [seen.rates[n] for n in minutes][-1] <= 13.6 * MB
    assert seen.rates[-1] >= 3 * MB
    assert seen.turns <= 2


def test_a_write_rate_that_leaps_is_kept_up_with() -> None:
    seen = simulate(lambda _: 70 * MB, lambda s: (2 if s < HOURS else 20) * MB, 3 * HOURS)
    assert seen.short_s <= STEP_S
    assert seen.rates[-1] >= 20 * MB
