"""Statements about all tables and views, over captured lines and over facts drawn at random."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from quotaflow.pipelines import config

from .. import case_tables
from ..delta_tables import NOON
from ..rows import LIMITERS, Row
from ..schemas.views.view_tables import temporary_folder
from .computed import compute_all, everything
from .made_facts import made_facts
from .recorded_facts import recorded_facts
from .statements import STATEMENTS, TOTALS, problems

CONF = config.Conf.model_validate(
    {"racks": {"10.0.1.0/24": "az-b"}, "producer_ids": {"default_quota_per_s": 1.0}}
)
RUNS_PER_EXAMPLE = 40
"""A run computes everything, which takes seconds, so a profile draws so many times fewer."""


@pytest.mark.faults
@settings(
    max_examples=max(settings().max_examples // RUNS_PER_EXAMPLE, 1),
    suppress_health_check=list(HealthCheck),
)
@given(st.integers(0, 2**32))
def test_statements_are_true_of_facts_drawn_at_random(seed: int) -> None:
    note(f"made_facts({seed})")
    database = everything(compute_all(temporary_folder(), made_facts(seed, CONF), CONF))
    assert problems(database) == {}


@pytest.fixture(scope="module")
def recorded(golden: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """All tables and views over the captured lines."""
    facts = recorded_facts(golden, temporary_folder(), CONF)
    with everything(compute_all(temporary_folder(), facts, CONF)) as database:
        yield database


def test_statements_are_true_of_captured_lines(recorded: duckdb.DuckDBPyConnection) -> None:
    assert problems(recorded) == {}


PLANTED: dict[str, tuple[str, Row]] = {
    **case_tables.table(__file__, "PLANTED"),
    "an answer is limited by one thing": (
        "fetch_sizes",
        {"fetches": 1, **{f"{limiter}_fetches": 1 for limiter in LIMITERS}},
    ),
    "quota_usage.usage is a number": ("quota_usage", {"usage": float("nan")}),
    "traffic: no time is ahead of all facts": ("traffic", {"event_time": NOON + timedelta(days=9)}),
}
"""Statement -> a row for which it is not true, and its table."""


def test_every_statement_has_a_planted_row() -> None:
    of_tables = {*STATEMENTS, *(f"one total of {fact}" for fact in TOTALS)}
    assert of_tables - PLANTED.keys() == {"a client owes no more than it had time for"}


@pytest.mark.parametrize("statement", PLANTED)
def test_a_planted_row_is_noticed(recorded: duckdb.DuckDBPyConnection, statement: str) -> None:
    table, values = PLANTED[statement]
    row = ", ".join(f'? AS "{name}"' for name in values)
    recorded.begin()
    try:
        recorded.execute(f"INSERT INTO {table} BY NAME SELECT {row}", list(values.values()))
        assert problems(recorded, statement)
    finally:
        recorded.rollback()
