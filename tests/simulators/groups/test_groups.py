"""Causes planted into simulated groups are named, by lines that the parser reads, and no others."""

import pytest

from .confusion import FRESH, Verdict, verdicts
from .plants import SCENES

LEAST_RIGHT = 0.95


@pytest.fixture(scope="module")
def each_scene() -> list[Verdict]:
    return verdicts(range(len(SCENES)))


def test_every_scene_is_there_once(each_scene: list[Verdict]) -> None:
    assert sorted(verdict.scene for verdict in each_scene) == sorted(SCENES)


@pytest.mark.parametrize("number", range(len(SCENES)), ids=[scene.name for scene in SCENES])
def test_planted_causes_are_named_first_and_no_other_is_sure(
    each_scene: list[Verdict], number: int
) -> None:
    verdict = each_scene[number]
    assert set(verdict.named) == set(verdict.plants), verdict
    assert verdict.wrong == (), verdict


@pytest.mark.faults
def test_planted_causes_of_fresh_seeds() -> None:
    given = verdicts(FRESH)
    assert [verdict for verdict in given if verdict.wrong] == []
    right = sum(verdict.is_right for verdict in given)
    assert right >= LEAST_RIGHT * len(given) > 100
