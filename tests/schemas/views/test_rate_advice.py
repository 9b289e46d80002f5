"""The rate a replication throttle should have: the rule in SQL, and what it is decided from."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from quotaflow.pipelines.warehouse import views
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.rules.throttle_rate import RatePolicy

from ...oracle.rules.throttle_rate import CurrentRate, Demand, advise
from ...rows import Row, replicated, setting, throttled
from .rate_rows import CAPACITY, MOVES, NOW, BySide, demand, demands, produced, sent
from .view_tables import picked, view

MB = 1e6
LONG_S = 10_000.0
LIMITED = {"leader_throttled_bytes": 6_000, "follower_throttled_bytes": 6_000}
EVERY = [throttled(NOW, listed="wildcard"), throttled(NOW - 60, listed="wildcard", partition=1)]


def made_up(dice: random.Random) -> tuple[Demand, CurrentRate | None, RatePolicy]:
    """A case like no real one: numbers meet each other's bounds more often."""
    few = [0.0, 0.5, 0.9, 1.0, 2.0, 4.0, 5.0, 10.0, 90.0, 100.0]
    rates = [MB * dice.choice([*few, dice.uniform(0, 120)]) for _ in range(4)]
    capacity = None if dice.random() < 0.05 else 2 * rates[0]
    rate_age_s = dice.choice([0.0, 179.0, 180.0, LONG_S])
    bounds = dice.choice(
        [RatePolicy(), RatePolicy(1.0, 0.0, 1.5, 60.0), RatePolicy(0.5, 0.5, 10.0, 1.0)]
    )
    stands = rates[3] > 0 and dice.random() < 0.9
    current = CurrentRate(rates[3], rate_age_s) if stands else None
    return Demand(capacity, rates[1], rates[2] / 4, dice.random() < 0.7), current, bounds


def demand_row(n: int, demand: Demand, current: CurrentRate | None, bounds: RatePolicy) -> Row:
    """The case as a row of replication_demand; what was set long ago was set at no known time."""
    row: Row = {"broker_id": n, "capacity_bytes_per_s": demand.capacity}
    row |= {"other_bytes_per_s": demand.other, "floor_bytes_per_s": demand.floor}
    row |= {"rate": current.rate if current else None, "rate_age_s": None}
    row |= {"are_clients_healthy": demand.are_clients_healthy}
    if current and current.rate_age_s < LONG_S:
        row["rate_age_s"] = current.rate_age_s
    row |= {"share": bounds.share, "hysteresis": bounds.hysteresis}
    return row | {"max_step_factor": bounds.max_step_factor, "cooldown_s": bounds.cooldown_s}


def test_sql_says_what_the_rule_says(tmp_path: Path) -> None:
    dice = random.Random(73)
    cases = [made_up(dice) for _ in range(5_000)]
    given = [demand_row(n, *case) for n, case in enumerate(cases)]
    content = pa.Table.from_pylist(given, schema=TABLES["replication_demand"].arrow)
    write_deltalake(tmp_path, content)
    builder = QueryBuilder().register("replication_demand", DeltaTable(tmp_path))
    query = views.load()["replication_rate_advice"].sql
    actual = pa.RecordBatchReader.from_stream(builder.execute(query)).read_all().to_pylist()
    reasons = Counter[str]()
    for row in actual:
        expected = advise(*cases[row["broker_id"]])
        assert (row["recommended"], row["reason"]) == (expected.rate, expected.reason), row
        reasons[row["reason"]] += 1
    assert len(actual) == len(cases)
    assert len(reasons) == 9
    assert min(reasons.values()) > 50


CAPACITIES: dict[str, tuple[list[Row], list[Row], tuple[Any, ...]]] = {
    "nobody knows": ([], [], (None, None, None)),
    "of all brokers": ([CAPACITY], [], (100 * MB, "conf", None)),
    "of this broker": (
        [CAPACITY, setting("replication.brokers.1", 7 * MB)],
        [],
        (7 * MB, "conf", None),
    ),
    "the most it ever sent": (
        [setting("replication.capacity_bytes_per_s", None)],
        [sent(NOW - 86_400, 900), sent(NOW, 100), sent(NOW, 50)],
        (None, None, 900.0),
    ),
    "forgotten": ([], [sent(NOW - 8 * 86_400, 900), sent(NOW, 100)], (None, None, 100.0)),
    "what it took is apart": ([], [sent(NOW, 9, flow="produced")], (None, None, None)),
    "conf says less than it carried": (
        [CAPACITY],
        [sent(NOW, 900_000_000)],
        (100 * MB, "conf", 900_000_000.0),
    ),
}
FLOORS: dict[str, tuple[list[Row], tuple[float, float]]] = {
    "the busiest minute of what is written": (MOVES, (70.0, 70.0)),
    "followers in sync are charged too": (
        [*MOVES, throttled(NOW, peer_broker_id=3, in_isr=True, offset_lag=0)],
        (140.0, 70.0),
    ),
    "partitions add up, whomever a follower reads them from": (
        [
            *MOVES,
            throttled(NOW, partition=1),
            throttled(NOW, partition=1, side="follower", broker_id=2, peer_broker_id=1),
            throttled(NOW - 60, partition=1, side="follower", broker_id=2, peer_broker_id=3),
        ],
        (75.0, 75.0),
    ),
    "one that * holds, and that was quiet in the last minute": ([*EVERY, *MOVES[1:]], (75.0, 70.0)),
    "no longer listed": (
        [throttled(NOW - 60), throttled(NOW, is_configured=False), *MOVES[1:]],
        (0.0, 70.0),
    ),
    "no list holds it": ([throttled(NOW, listed="unlisted"), *MOVES[1:]], (0.0, 70.0)),
    "nobody reads from it": (
        [throttled(NOW, peer_broker_id=None, reason="not_replicating"), *MOVES[1:]],
        (0.0, 70.0),
    ),
}
WRITTEN = [
    *(produced(NOW - 60, 70), produced(NOW, 30), produced(NOW - 600, 900)),
    *(produced(NOW, 5, partition=1), produced(NOW, 3, topic=None, topic_id="t9")),
]
CURRENT_RATES: dict[str, tuple[list[Row], tuple[Any, ...]]] = {
    "set long ago": ([throttled(NOW)], (2e6, 3_660.0, "User:admin")),
    "set before the log began": (
        [throttled(NOW, rate_set_at=None, rate_set_by=None)],
        (2e6, None, None),
    ),
    "a rate in a file": ([throttled(NOW, rate_source="static")], (None, None, None)),
    "removed a minute ago": (
        [throttled(NOW - 60), throttled(NOW, rate=None, rate_source="unset")],
        (None, None, None),
    ),
}


@pytest.fixture(scope="module")
def demanded() -> dict[str, BySide]:
    cases = {
        case: {"settings": settings, "rack_traffic": traffic}
        for case, (settings, traffic, _) in CAPACITIES.items()
    }
    cases |= {
        case: {"replication_throttles": throttles, "replication_traffic": WRITTEN}
        for case, (throttles, _) in FLOORS.items()
    }
    cases |= {
        case: {"replication_throttles": throttles} for case, (throttles, _) in CURRENT_RATES.items()
    }
    return demands(cases)


@pytest.mark.parametrize("case", CAPACITIES)
def test_what_a_broker_can_carry(demanded: dict[str, BySide], case: str) -> None:
    names = ("capacity_bytes_per_s", "capacity_source", "carried_at_most_bytes_per_s")
    assert picked([demanded[case][1, "leader"]], *names) == [CAPACITIES[case][-1]]


def test_other_traffic_is_that_of_the_busiest_of_ten_minutes_and_after_the_move() -> None:
    actual = demand(
        rack_traffic=[sent(NOW - 600, 9_000), sent(NOW - 540, 300), sent(NOW, 200)],
        replication_traffic=[
            produced(NOW, 10),
            replicated(NOW, 1, 2, bytes=60_000, **LIMITED),
            replicated(NOW, 1, 3, bytes=6_000),
        ],
    )
    assert actual[1, "leader"]["other_bytes_per_s"] == (200 + 900 + 100) + 10
    assert actual[2, "follower"]["other_bytes_per_s"] == 900 + 10


@pytest.mark.parametrize("case", FLOORS)
def test_the_least_that_must_pass(demanded: dict[str, BySide], case: str) -> None:
    leader, follower = demanded[case][1, "leader"], demanded[case][2, "follower"]
    assert (leader["floor_bytes_per_s"], follower["floor_bytes_per_s"]) == FLOORS[case][-1]


@pytest.mark.parametrize("case", CURRENT_RATES)
def test_the_rate_that_stands(demanded: dict[str, BySide], case: str) -> None:
    (actual,) = demanded[case].values()
    assert (actual["rate"], actual["rate_age_s"], actual["rate_set_by"]) == CURRENT_RATES[case][-1]


def test_only_brokers_of_the_last_hour_with_a_list_or_a_move_are_told() -> None:
    alone = {"topic": None, "partition": None, "listed": "unlisted", "is_moving": False}
    throttles = [
        throttled(NOW, broker_id=1),
        throttled(60, broker_id=2),
        throttled(0, broker_id=3),
        throttled(NOW, broker_id=4, **alone),
        throttled(NOW, broker_id=None, partition=None, listed="wildcard"),
        throttled(NOW, broker_id=1, cluster_id="c2"),
    ]
    content = {"replication_throttles": throttles}
    actual = view("replication_demand ORDER BY cluster_id, broker_id", content)
    assert picked(actual, "cluster_id", "broker_id") == [("c1", 1), ("c1", 2), ("c2", 1)]
