"""Producer-id rates in SQL against the rules in Python, many principals in one frame."""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from quotaflow.pipelines.config import ProducerIdsSection
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.incremental.result import RuleInputs
from quotaflow.pipelines.results.producer_ids import producer_id_rates, producer_id_tokens
from quotaflow.schemas.table import TIMESTAMP
from quotaflow.schemas.tables.producer_ids import PRODUCER_ID_RATES
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.udfs.producer_ids import SIGHTINGS
from quotaflow.udfs.rules.timed_filter import TimedBloomFilter
from quotaflow.udfs.rules.token_bucket import TokenBucket

# A multiple of every window below, so that a test can speak of seconds since its start.
START_MS = 1_795_262_400_000
KIP_936 = ProducerIdsSection(quotas={"low": 0.001, "high": 1_000_000, "p1": 0.5})
FEW_LONG_WINDOWS = ProducerIdsSection(
    num_windows=3, window_ms=2_000, filter_window_ms=4_000, filter_items=5, quotas={"p1": 0.125}
)
ONE_WINDOW = ProducerIdsSection(num_windows=1, filter_window_ms=1_000, default_quota_per_s=2.5)
Key = tuple[str, int, str, str]
Sighting = tuple[Key, int, int]


def sightings(user: str, times_ms: Iterable[tuple[float, int]], **key: Any) -> list[Sighting]:
    """Sightings (ms since the start, id) of one user on one broker."""
    client = ("c", key.get("broker_id", 1), f"User:{user}", key.get("kind", "allocation"))
    return [(client, START_MS + int(time_ms), producer_id) for time_ms, producer_id in times_ms]


def as_frame(spark: SparkSession, seen: list[Sighting]) -> DataFrame:
    schema = SIGHTINGS.append(pa.field("event_time", TIMESTAMP))
    rows = [(*key, time_ms, id_, time_ms * 1_000) for key, time_ms, id_ in seen]
    columns = zip(*random.Random(1).sample(rows, len(rows)), strict=True)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=schema))


def rows_of(frame: DataFrame) -> dict[tuple[Key, int], dict[str, Any]]:
    """Rows by key and second since the start."""
    rows = {}
    for row in frame.collect():
        key = (row["cluster_id"], row["broker_id"], row["principal"], row["kind"])
        second = row["event_time"].timestamp() - START_MS / 1_000
        assert (key, int(second)) not in rows
        rows[key, int(second)] = row.asDict()
    return rows


def by_key(seen: list[Sighting]) -> dict[Key, list[tuple[int, int]]]:
    grouped = defaultdict(list)
    for key, time_ms, producer_id in seen:
        grouped[key].append((time_ms, producer_id))
    return {key: sorted(events) for key, events in grouped.items()}


def expected(
    seen: list[Sighting], conf: ProducerIdsSection
) -> dict[tuple[Key, int], dict[str, Any]]:
    """What the rules say, one event after the other."""
    return {
        (key, second - START_MS // 1_000): row
        for key, events in by_key(seen).items()
        for second, row in seconds_of(key[2], events, conf)
    }


def seconds_of(
    principal: str, events: list[tuple[int, int]], conf: ProducerIdsSection
) -> Iterator[tuple[int, dict[str, Any]]]:
    seen, new, new_exact = (defaultdict[int, int](int) for _ in range(3))
    flags = zip(events, filtered(events, conf), exact(events, conf), strict=True)
    for (time_ms, _), is_new, is_new_exact in flags:
        seen[time_ms // 1_000] += 1
        new[time_ms // 1_000] += is_new
        new_exact[time_ms // 1_000] += is_new_exact
    window_s, rate_period_s = conf.window_ms // 1_000, conf.num_windows * conf.window_ms // 1_000
    quota = conf.quotas.get(principal.removeprefix("User:"), conf.default_quota_per_s)
    bucket, last = TokenBucket(quota, conf.num_windows, conf.window_ms), 0
    waits = dict[int, int]()
    # A second has a row while any window still feels a sighting.
    felt = {t for s in seen for t in range(s, s // window_s * window_s + rate_period_s)}
    for second in sorted(felt):
        if second - last > producer_id_tokens.FULL_AGAIN_S:
            bucket = TokenBucket(quota, conf.num_windows, conf.window_ms)
        last = second
        bucket.record(new[second], second * 1_000)
        tokens = bucket.measure(second * 1_000)
        first = second // window_s * window_s - rate_period_s + window_s
        if new[second] and tokens < -1e-9:
            waits[second] = int(-tokens / quota * 1_000 + 0.5)
        recent = [waits[s] for s in range(first, second + 1) if s in waits]
        yield (
            second,
            {
                "sightings": seen[second],
                "new_ids": new[second],
                "new_ids_exact": new_exact[second],
                "rate_per_s": sum(new[s] for s in range(first, second + 1)) / rate_period_s,
                "tokens": tokens,
                "quota_per_s": quota,
                "throttle_time_avg_ms": sum(recent) / len(recent) if recent else 0.0,
            },
        )


def filtered(events: list[tuple[int, int]], conf: ProducerIdsSection) -> list[bool]:
    rule = TimedBloomFilter(
        conf.filter_items, conf.filter_false_positive_rate, conf.filter_window_ms
    )
    return [rule.first_sighting(producer_id, time_ms) for time_ms, producer_id in events]


def exact(events: list[tuple[int, int]], conf: ProducerIdsSection) -> Iterator[bool]:
    """Sets in place of filters: this window's ids, and in its first half those of the last one."""
    ids = defaultdict[int, set[int]](set)
    for time_ms, producer_id in events:
        window, into_ms = divmod(time_ms, conf.filter_window_ms)
        seen_ids = ids[window] | (ids[window - 1] if 2 * into_ms < conf.filter_window_ms else set())
        ids[window].add(producer_id)
        yield producer_id not in seen_ids


def made_up(seed: int, window_ms: int) -> list[Sighting]:
    """Principals that repeat ids, restart, burst, fall silent for a while, and for over a day."""
    dice, seen = random.Random(seed), list[Sighting]()
    steps = [0, 1, 999, 1_000, window_ms // 2, window_ms - 1, window_ms, 3 * window_ms // 2]
    for number in range(120):
        time_ms, times_ms = float(dice.randrange(window_ms)), list[tuple[float, int]]()
        for _ in range(dice.randrange(1, 40)):
            long = (
                [86_400_000, 86_389_000, 86_391_000, 90_000_000] if dice.random() < 0.05 else steps
            )
            time_ms += dice.choice([*long, dice.randrange(3_000)])
            times_ms.append((time_ms, dice.randrange(dice.choice([2, 30, 2**62]))))
        kind, user = dice.choice(["allocation", "activation"]), f"p{number // 2}"
        seen += sightings(user, times_ms, broker_id=number, kind=kind)
    return seen


# (user, sightings): cases a random sequence hardly meets.
EDGES = [
    *sightings("low", [(0, n) for n in range(300)]),
    *sightings("low", [(90_000_000, 999)]),
    *sightings("debt", [(1_000 * s, 100 * s + n) for s in range(30) for n in range(5)]),
    *sightings("high", [(1_000 * s, n) for s in (0, 1, 86_500) for n in range(50)]),
    *sightings("idle", [(0, 1), (500_000, 1), (500_000, 2)]),
    *sightings("both", [(0, 1)], kind="allocation"),
    *sightings("both", [(0, 1), (5, 1), (10, 2)], kind="activation"),
]


@pytest.mark.spark
@pytest.mark.parametrize(
    "conf",
    [
        pytest.param(KIP_936, id="11 windows of a second"),
        pytest.param(FEW_LONG_WINDOWS, id="3 windows of 2 s, filters of 4 s that overflow"),
        pytest.param(ONE_WINDOW, id="1 window, filters of a second"),
    ],
)
def test_sql_says_what_the_rules_say(spark: SparkSession, conf: ProducerIdsSection) -> None:
    seen = made_up(conf.num_windows, conf.filter_window_ms) + EDGES
    got = rows_of(producer_id_rates.rates(RuleInputs(as_frame(spark, seen)), conf=conf))
    rules = expected(seen, conf)
    assert got.keys() == rules.keys()
    differing = []
    for at, row in got.items():
        tokens = row["tokens"]
        throttle_ms = int(-tokens / row["quota_per_s"] * 1_000 + 0.5) if tokens < 0 else 0
        derived = {"is_violating": tokens < 0, "throttle_time_ms": throttle_ms}
        want = rules[at] | derived
        if {name: row[name] for name in want} != pytest.approx(want, rel=1e-9, abs=1e-9):
            differing.append((at, row, want))
        assert row["event_date"] == row["event_time"].astimezone(UTC).date()
    assert differing == []
    assert min(row["tokens"] for row in got.values()) < -5
    assert max(row["throttle_time_avg_ms"] for row in got.values()) > 0
    assert any(row["new_ids"] != row["new_ids_exact"] for row in got.values()) == (
        conf is FEW_LONG_WINDOWS
    )


@pytest.mark.spark
def test_columns_and_units(spark: SparkSession) -> None:
    """A burst by hand: quota 0.5 per s saves up 5.5; 9 ids leave -3.5, and 7 s to wait."""
    seen = sightings("p1", [(250, n) for n in range(9)] + [(999, 0)])
    frame = producer_id_rates.rates(RuleInputs(as_frame(spark, seen)), conf=KIP_936)
    assert frame.columns == PRODUCER_ID_RATES.column_names
    rows = rows_of(frame)
    key = ("c", 1, "User:p1", "allocation")
    assert sorted(rows) == [(key, second) for second in range(11)]
    first, last = rows[key, 0], rows[key, 10]
    shown = ("sightings", "new_ids", "rate_per_s", "tokens", "throttle_time_ms", "is_violating")
    assert [first[name] for name in shown] == [10, 9, pytest.approx(9 / 11), -3.5, 7_000, True]
    assert [last[name] for name in shown] == [0, 0, pytest.approx(9 / 11), 1.5, 0, False]


REQUEST = {
    "cluster_id": "c",
    "broker_id": 1,
    "api": "INIT_PRODUCER_ID",
    "principal": "User:alice",
    "event_time": datetime.fromtimestamp(START_MS / 1_000, UTC) + timedelta(milliseconds=7),
    "producer_id": 5,
    "error_code": 0,
}


@pytest.mark.spark
def test_what_counts_as_a_sighting(spark: SparkSession) -> None:
    counted = [
        REQUEST,
        REQUEST | {"api": "ADD_PARTITIONS_TO_TXN", "error_code": None, "producer_id": 0},
        REQUEST | {"api": "PRODUCE", "error_code": None, "producer_id": 2**62},
    ]
    ignored = [
        REQUEST | {"error_code": 14},
        REQUEST | {"error_code": 51, "producer_id": 6},
        REQUEST | {"producer_id": None},
        REQUEST | {"producer_id": -1},
        REQUEST | {"principal": None},
    ]
    table = pa.Table.from_pylist(counted + ignored, schema=REQUESTS.arrow)
    rows = (
        producer_id_rates.result(ProducerIdsSection())
        .relevant_facts(spark.createDataFrame(table))
        .collect()
    )
    assert sorted(row["producer_id"] for row in rows) == [0, 5, 2**62]
    assert {row["event_ms"] for row in rows} == {START_MS + 7}
    assert {row["kind"] for row in rows} == {"allocation"}


def test_the_driver_is_told_how_far_the_rule_remembers() -> None:
    result = producer_id_rates.result(FEW_LONG_WINDOWS)
    assert (result.lookback_s, result.carry_s) == (8 + 6, 86_400)


@pytest.mark.parametrize("quota", [0.0004, 1_000_001.0])
def test_a_quota_that_tokens_cannot_count_is_refused(quota: float) -> None:
    with pytest.raises(ConfigError, match=f"quota of alice is {quota}.* 0.001 and 1000000"):
        producer_id_rates.result(ProducerIdsSection(quotas={"alice": quota}))
