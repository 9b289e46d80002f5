"""Bursts of producer ids under random names, which no rule can distinguish from words."""

import random

import pytest

from ...rows import use
from .view_tables import view

WORDS = "bcdfghjklmnpqrstvwxz"
TAILS = {
    "letters behind a dash": (WORDS, "-"),
    "letters at once": (WORDS, ""),
    "both cases at once": (WORDS + WORDS.upper(), ""),
    "all letters": ("abcdefghijklmnopqrstuvwxyz", ""),
    "with separators among them": (f"{WORDS}-_", ""),
    "with separators among them, behind a dash": (f"{WORDS}-_.", "-"),
}
"""Random characters, and what stands before them."""


def names_of(kind: str, program: str, count: int, draws: random.Random) -> list[str]:
    alphabet, separator = TAILS[kind]
    return [f"{program}{separator}{''.join(draws.choices(alphabet, k=12))}" for _ in range(count)]


@pytest.mark.parametrize("count", [12, 60, 400])
@pytest.mark.parametrize("kind", TAILS)
def test_those_of_a_program_are_one_source_and_those_of_two_stay_two(kind: str, count: int) -> None:
    draws = random.Random(f"{kind} {count}")
    for programs in (("payments",), ("payments", "billing"), ("payments", "payroll")):
        names = [name for each in programs for name in names_of(kind, each, count, draws)]
        draws.shuffle(names)
        made = [
            use(n, 1_000 + n, client_id=name, client_pattern=name, client_address="10.0.0.7")
            for n, name in enumerate(names)
        ]
        (burst,) = view("producer_id_bursts", {"producer_id_uses": made})
        shown = (programs, burst["source"], burst["sources"])
        assert burst["sources"] == len(programs), shown
        assert burst["source"].startswith(programs), shown
