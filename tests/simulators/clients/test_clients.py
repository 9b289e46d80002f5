"""Faults planted into simulated clients are named, and no client that is well is accused."""

import pytest

from .confusion import FRESH, Outcome, outcomes
from .scenes import PLANTED, WELL

LEAST_RIGHT = 0.9


@pytest.fixture(scope="module")
def each_scene() -> dict[str, Outcome]:
    return {outcome.scene: outcome for outcome in outcomes([1])}


@pytest.mark.parametrize("scene", [*PLANTED, *WELL])
def test_the_planted_cause_comes_first(each_scene: dict[str, Outcome], scene: str) -> None:
    outcome = each_scene[scene]
    assert outcome.is_right, outcome
    assert outcome.wrong == (), outcome


@pytest.mark.faults
def test_planted_causes_of_fresh_seeds() -> None:
    given = outcomes(FRESH)
    assert [outcome for outcome in given if outcome.wrong or outcome.accused] == []
    right = sum(outcome.is_right for outcome in given)
    assert right >= LEAST_RIGHT * len(given) > 100
