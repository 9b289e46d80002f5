"""Statements about all tables and views, over captured lines and over facts drawn at random."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from quotaflow.pipelines import config

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
    "a bound of an answer is at most what its partitions may return": (
        "fetch_sizes",
        {"partitions": 3, "partition_max_bytes": 10, "bound_bytes": 52},
    ),
    "an answer is limited by one thing": (
        "fetch_sizes",
        {"fetches": 1, **{f"{limiter}_fetches": 1 for limiter in LIMITERS}},
    ),
    "the parts of a latency are the whole": (
        "client_latency",
        {
            "latency_avg_ms": 650.0,
            "broker_total_avg_ms": 1.0,
            "throttle_avg_ms": 600.0,
            "outside_avg_ms": 649.0,
        },
    ),
    "a latency is split, or a reason says why not": ("client_latency", {"latency_avg_ms": 1.0}),
    "expected pushes are those that came and those that did not": (
        "client_coverage",
        {"expected_pushes": 10, "accepted_pushes": 1, "missing_pushes": 1},
    ),
    "no advice and no plan slows a protected principal": (
        "desired_configs",
        {"cluster_id": "cluster", "entity_type": "user", "entity_name": "admin"},
    ),
    "what a topic keeps is known, or a reason says why not": (
        "storage_by_hour",
        {"known_s": 60.0, "unsized_replicas": 0},
    ),
    "what is done has nothing left": ("reassignments", {"state": "done", "offsets_left": 5}),
    "a verdict on racks is what the share that crossed says": (
        "client_racks",
        {"verdict": "elsewhere", "cross_rack_share": 0.5},
    ),
    "no price, no cost": ("top_talkers", {"cluster_id": "free", "cost": 0.0}),
    "a rate is its increase by its time": (
        "metric_totals",
        {"increase": 10.0, "elapsed_ms": 1_000.0, "rate_per_s": 0.01},
    ),
    "one request is charged to one quota of a client": (
        "quota_usage",
        {"cluster_id": "cluster", "request_count": 1_000_000},
    ),
    "fetch_sizes.bytes is not negative": ("fetch_sizes", {"bytes": -1}),
    "top_talkers.share is a share": ("top_talkers", {"share": 1.5}),
    "quota_usage.usage is a number": ("quota_usage", {"usage": float("nan")}),
    "traffic: cross_rack_bytes is at most bytes": ("traffic", {"cross_rack_bytes": 2, "bytes": 1}),
    "traffic: no time is ahead of all facts": ("traffic", {"event_time": NOON + timedelta(days=9)}),
    "one total of bytes by flow": ("rack_traffic", {"flow": "consumed", "bytes": 1}),
    "one total of bytes across racks by flow": (
        "traffic_by_hour",
        {"direction": "produced", "bytes": 7, "cross_rack_bytes": 7},
    ),
    "one total of throttled requests by quota": (
        "throttled_clients",
        {"quota_type": "request_percentage", "throttled_requests": 1},
    ),
    "one total of time throttled": ("quota_usage", {"throttle_time_ms": 5.0}),
    "one total of pushes": ("client_coverage", {"accepted_pushes": 3}),
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
