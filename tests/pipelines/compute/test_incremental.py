"""A result table equals one pure function of its facts: however split, late, or replayed."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.config import AlertsSection, ProducerIdsSection
from quotaflow.pipelines.config.alerts import AlertRule
from quotaflow.pipelines.results.declared import result_of
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.time_ranges import EVER, sliced
from quotaflow.schemas.table import DATE, LONG, TIMESTAMP, Column, Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import REQUESTS
from quotaflow.udfs.engine.rule import Rule

from .maintained import Maintained, is_late

START = datetime(2026, 11, 21, 23, 58, tzinfo=UTC)
SECOND = timedelta(seconds=1)
Fact = dict[str, Any]


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


SUMS = Table(
    name="sums",
    comment="Sum of the producer ids of the last 30 s",
    columns=(
        Column("event_date", DATE, "UTC date"),
        Column("event_time", TIMESTAMP, "second"),
        Column("total", LONG, "sum over 30 s"),
    ),
    key=("event_time",),
    time="event_time",
    partitioning=("event_date",),
)
_SUMS = """
WITH seconds AS (
    SELECT epoch_seconds(event_time) AS second, sum(producer_id) AS ids
    FROM requests GROUP BY second
)
SELECT
    CAST(from_seconds(second) AS DATE) AS event_date, from_seconds(second) AS event_time,
    sum(ids) OVER (ORDER BY second RANGE BETWEEN 30 PRECEDING AND CURRENT ROW) AS total
FROM seconds
"""
LATENESS_S = 300
CONF = config.Conf(
    results=config.ResultsSection(max_lateness_s=LATENESS_S),
    producer_ids=ProducerIdsSection(
        num_windows=3, window_ms=10_000, filter_items=50, default_quota_per_s=0.5
    ),
    alerts=AlertsSection(
        rules=[
            AlertRule(name="slow", metric="*.queue.time", above=10, clear=9, for_s=20, stale_s=60)
        ]
    ),
)


def sums() -> Result:
    """A rule that is not sequential and remembers 30 s; a fact may not show outside its bucket."""
    return Result(
        table=SUMS,
        rule=Rule("sums", _SUMS, SUMS.arrow),
        facts=REQUESTS,
        relevant="producer_id >= 0 AND coalesce(error_code, 0) = 0 AND principal IS NOT NULL",
        bucket_s=10,
        lookback_s=30,
    )


def rates() -> Result:
    return result_of("producer_id_rates", CONF)


def uses() -> Result:
    """A rule that counts, and keeps rows for what else came in their minute."""
    return result_of("producer_id_uses")


def alerts() -> Result:
    """A rule that walks in Python, and remembers more than its last row says."""
    return result_of("metric_alert_events", CONF)


class Interrupted(Batch):
    """A batch whose process dies between its two writes."""

    def report(self, *_: object) -> None:
        raise InterruptedError


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Result], Maintained]:
    monkeypatch.setitem(TABLES, SUMS.name, SUMS)
    return lambda result: Maintained.make(tmp_path, result, conf=CONF)


def made_up(dice: random.Random, rows: int = 300) -> list[Fact]:
    """Facts of some principals around midnight, a day apart, and far apart; some come late."""
    seconds = [0, 3, 30, 118, 121, 300, 900, 86_390, 86_410, 180_000, 180_060]
    facts = []
    for number in range(rows):
        time = at(dice.choice(seconds) + dice.randrange(12_000) / 1_000)
        delay_s = dice.choice([0, 1, 60, LATENESS_S, *([LATENESS_S + 1] if number % 3 else [])])
        facts.append(
            {
                "cluster_id": "c",
                "broker_id": dice.choice([1, 2]),
                "principal": f"User:{dice.choice('abcd')}",
                "event_time": time,
                "record_time": time + delay_s * SECOND,
                "producer_id": dice.choice([number, number % 20]),
                "error_code": dice.choice([0, 0, 0, None, 51]),
                "api": (api := dice.choice(["INIT_PRODUCER_ID", "END_TXN", "PRODUCE"])),
                "client_id": f"client-{dice.randrange(3)}",
            }
            | ({"producer_id": None} if api == "PRODUCE" else {})
        )
    return facts


def made_up_readings(dice: random.Random) -> list[Fact]:
    """Readings of two series around the bound of a rule, in hours far apart; some come late."""
    times_s = dice.sample(
        [t * 7 for t in (*range(300), *range(900, 1_200), *range(9_000, 9_300))], 500
    )
    return [
        {
            "cluster_id": "c",
            "series_id": number % 2,
            "metric": dice.choice(["a.queue.time", "a.queue.time", "b_queue.time"]),
            "value": dice.choice([4.0, 8.5, 9.5, 11.0, 12.0, 12.0, 12.0, float("nan")]),
            "client_id": f"client {time_s}",
            "attributes": [("of", "x")],
            "event_time": at(time_s),
            "record_time": record_time(dice, at(time_s)),
        }
        for number, time_s in enumerate(times_s)
    ]


def record_time(dice: random.Random, time: datetime) -> datetime | None:
    """The time of a record; a few have none."""
    delay_s = dice.choice([0, 1, 60, 60, LATENESS_S + 1, None])
    return None if delay_s is None else time + delay_s * SECOND


def split(dice: random.Random, facts: list[Fact], batches: int) -> list[list[Fact]]:
    """The facts in a random order, cut at random; so most batches hold facts of every time."""
    shuffled = dice.sample(facts, len(facts))
    cuts = sorted(dice.sample(range(1, len(facts)), batches - 1))
    return [shuffled[a:b] for a, b in zip([0, *cuts], [*cuts, len(facts)], strict=True)]


def by_time(_dice: random.Random, facts: list[Fact], batches: int) -> list[list[Fact]]:
    """The facts in the order of their records."""
    ordered = sorted(facts, key=lambda fact: fact["record_time"] or fact["event_time"])
    size = -(-len(facts) // batches)
    return [ordered[i : i + size] for i in range(0, len(facts), size)]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.faults)])
@pytest.mark.parametrize("result", [rates, alerts, uses, sums])
@pytest.mark.parametrize(
    "cut",
    [
        pytest.param(by_time, marks=pytest.mark.faults, id="in record order"),
        pytest.param(split, id="in any order"),
    ],
)
def test_any_split_gives_the_same_table_as_the_function_over_all(
    make: Callable[[Result], Maintained],
    result: Callable[[], Result],
    cut: Callable[..., list[list[Fact]]],
    seed: int,
) -> None:
    dice = random.Random(f"{result.__name__} {cut.__name__} {seed}")
    facts = made_up_readings(dice) if result is alerts else made_up(dice)
    under = make(result())
    batches = cut(dice, facts, 4)
    # Ingest may be ahead: a batch may find facts in the table that a later one brings.
    arrived = [under.arrive(batches[0]), under.arrive(batches[1])]
    under.keep(arrived[0], 0)
    under.keep(arrived[0], 0)
    with pytest.raises(InterruptedError):
        under.keep(arrived[1], 1, Interrupted)
    arrived.append(under.arrive(batches[2]))
    under.keep(arrived[1], 1)
    under.keep(arrived[2], 2)
    under.keep(under.arrive(batches[3]), 3)

    timely = [fact for fact in facts if not is_late(fact, LATENESS_S)]
    assert under.table() == under.whole(timely)
    counted = under.progress()
    assert counted["late"] > 10
    assert counted["in"] > counted["late"]


# The other tests have tasks of 100.
@pytest.mark.parametrize("rows_per_task", [20, 1_000])
@pytest.mark.parametrize("result", [rates, alerts, uses, sums])
def test_the_number_of_tasks_changes_nothing(
    make: Callable[[Result], Maintained], result: Callable[[], Result], rows_per_task: int
) -> None:
    dice = random.Random(5)
    facts = made_up_readings(dice) if result is alerts else made_up(dice)
    under = replace(make(result()), rows_per_task=rows_per_task)
    for batch in by_time(dice, facts, 12):
        under.arrive(batch)
    under.rebuild(EVER, 0)
    assert under.table() == under.whole(facts)


def test_a_rebuild_takes_late_facts_in_and_a_lost_checkpoint_changes_nothing(
    make: Callable[[Result], Maintained],
) -> None:
    facts, under = made_up(random.Random(7)), make(rates())
    arrived = under.arrive(facts)
    under.keep(arrived, 0)
    streamed = under.table()
    replace(under, query_id="second").keep(arrived, 0)
    assert under.table() == streamed
    rebuild, expected = replace(under, query_id="rebuild"), under.whole(facts)
    days = [*sliced(at(-120), None, at(86_400), timedelta(days=1)), EVER]
    for number, time_range in enumerate(days):
        written = rebuild.rebuild(time_range, number)
        # Up to the newest row, a slice after the other and all at once are the same.
        if time_range.end is None:
            assert under.table() == expected
    assert (written, len(days)) == (len(expected), 3)
    assert expected != streamed


def test_a_batch_of_nothing_relevant_or_of_late_facts_leaves_the_result_alone(
    make: Callable[[Result], Maintained],
) -> None:
    under = make(sums())
    dice = random.Random(3)
    error = [fact | {"error_code": 51} for fact in made_up(dice, 5)]
    request = {"api": "INIT_PRODUCER_ID", "error_code": 0, "producer_id": 7}
    late = [
        fact | request | {"record_time": fact["event_time"] + 2 * LATENESS_S * SECOND}
        for fact in made_up(dice, 5)
    ]
    under.keep(under.arrive(error), 0)
    assert (under.table(), under.progress()) == ([], {})
    under.keep(under.arrive(late), 1)
    assert (under.table(), under.progress()) == ([], {"in": 5, "late": 5})
