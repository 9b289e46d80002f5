"""Producer-id rates in SQL against the rules in Python, many principals at once."""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quotaflow.pipelines.config import Conf, ProducerIdsSection
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.results.declared import result_of
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.rules.timed_filter import TimedBloomFilter
from quotaflow.udfs.rules.token_bucket import TokenBucket

from ....cases import cases
from ....examples import EXPENSIVE
from ....rule_rows import Rows, compute
from ..splits import assert_parts_equal_whole

# A multiple of every window below, so that a test can speak of seconds since its start.
START_MS = 1_795_262_400_000
UNLIMITED = ProducerIdsSection(quotas={"low": 0.001})
KIP_936 = ProducerIdsSection(
    default_quota_per_s=1.0, quotas={"low": 0.001, "high": 1_000_000, "p1": 0.5}
)
FEW_LONG_WINDOWS = ProducerIdsSection(
    default_quota_per_s=1.0, num_windows=3, window_ms=2_000, filter_items=5, quotas={"p1": 0.125}
)
ONE_WINDOW = ProducerIdsSection(num_windows=1, default_quota_per_s=2.5)
Key = tuple[str, int, str]
Sighting = tuple[Key, int, int]


def sightings(user: str, times_ms: Iterable[tuple[float, int]], **key: Any) -> list[Sighting]:
    """Sightings (ms since the start, id) of one user on one broker."""
    client = (key.get("cluster_id", "c"), key.get("broker_id", 1), f"User:{user}")
    return [(client, START_MS + int(time_ms), producer_id) for time_ms, producer_id in times_ms]


def requests(seen: list[Sighting]) -> Rows:
    """Answers of INIT_PRODUCER_ID, in no order."""
    return [
        dict(
            zip(
                result_of("producer_id_rates", Conf(producer_ids=KIP_936)).carry_key,
                key,
                strict=True,
            )
        )
        | {"event_time": at(time_ms), "record_time": at(time_ms)}
        | {"api": "INIT_PRODUCER_ID", "producer_id": producer_id, "error_code": 0}
        for key, time_ms, producer_id in random.Random(1).sample(seen, len(seen))
    ]


def at(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms // 1_000, UTC) + timedelta(milliseconds=time_ms % 1_000)


def rates(seen: list[Sighting], conf: ProducerIdsSection) -> dict[tuple[Key, int], dict[str, Any]]:
    """Rows by key and second since the start."""
    rows = {}
    for row in compute(
        result_of("producer_id_rates", Conf(producer_ids=conf)), requests=requests(seen)
    ):
        key = (row["cluster_id"], row["broker_id"], row["principal"])
        second = row["event_time"].timestamp() - START_MS / 1_000
        assert (key, int(second)) not in rows
        rows[key, int(second)] = row
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
    # A bucket of another quota stands in where there is none: its numbers are not compared.
    rate = quota or 1.0
    bucket, last = TokenBucket(rate, conf.num_windows, conf.window_ms), 0
    waits = dict[int, int]()
    # A second has a row while any window still feels a sighting.
    felt = {t for s in seen for t in range(s, s // window_s * window_s + rate_period_s)}
    for second in sorted(felt):
        if second - last > result_of("producer_id_rates").carry_s:
            bucket = TokenBucket(rate, conf.num_windows, conf.window_ms)
        last = second
        bucket.record(new[second], second * 1_000)
        tokens = bucket.measure(second * 1_000)
        first = second // window_s * window_s - rate_period_s + window_s
        if new[second] and tokens < -1e-9:
            waits[second] = int(-tokens / rate * 1_000 + 0.5)
        recent = [waits[s] for s in range(first, second + 1) if s in waits]
        yield (
            second,
            {
                "sightings": seen[second],
                "new_ids": new[second],
                "new_ids_exact": new_exact[second],
                "rate_per_s": sum(new[s] for s in range(first, second + 1)) / rate_period_s,
                "tokens": None if quota is None else tokens,
                "quota_per_s": quota,
                "throttle_time_avg_ms": None
                if quota is None
                else (sum(recent) / len(recent) if recent else 0.0),
            },
        )


def filtered(events: list[tuple[int, int]], conf: ProducerIdsSection) -> list[bool]:
    rule = TimedBloomFilter(conf.filter_items, conf.filter_false_positive_rate, conf.window_ms)
    return [rule.first_sighting(producer_id, time_ms) for time_ms, producer_id in events]


def exact(events: list[tuple[int, int]], conf: ProducerIdsSection) -> Iterator[bool]:
    """Sets in place of filters: this window's ids, and in its first half those of the last one."""
    ids = defaultdict[int, set[int]](set)
    for time_ms, producer_id in events:
        window, into_ms = divmod(time_ms, conf.window_ms)
        seen_ids = ids[window] | (ids[window - 1] if 2 * into_ms < conf.window_ms else set())
        ids[window].add(producer_id)
        yield producer_id not in seen_ids


def made_up(seed: int, window_ms: int, keys: int) -> list[Sighting]:
    """Principals that repeat ids, restart, burst, fall silent for a while, and for over a day."""
    dice, seen = random.Random(seed), list[Sighting]()
    steps = [0, 1, 999, 1_000, window_ms // 2, window_ms - 1, window_ms, 3 * window_ms // 2]
    for number in range(keys):
        time_ms, times_ms = float(dice.randrange(window_ms)), list[tuple[float, int]]()
        for _ in range(dice.randrange(1, 40)):
            long = (
                [86_400_000, 86_389_000, 86_391_000, 90_000_000] if dice.random() < 0.05 else steps
            )
            time_ms += dice.choice([*long, dice.randrange(3_000)])
            times_ms.append((time_ms, dice.randrange(dice.choice([2, 30, 2**62]))))
        cluster_id, user = dice.choice(["c", "d"]), f"p{number // 2}"
        seen += sightings(user, times_ms, broker_id=number, cluster_id=cluster_id)
    return seen


# (user, sightings): cases a random sequence hardly meets.
EDGES = [
    *sightings("low", [(0, n) for n in range(300)]),
    *sightings("low", [(90_000_000, 999)]),
    *sightings("debt", [(1_000 * s, 100 * s + n) for s in range(30) for n in range(5)]),
    *sightings("high", [(1_000 * s, n) for s in (0, 1, 86_500) for n in range(50)]),
    *sightings("idle", [(0, 1), (500_000, 1), (500_000, 2)]),
    *sightings("both", [(0, 1)], cluster_id="c"),
    *sightings("both", [(0, 1), (5, 1), (10, 2)], cluster_id="d"),
]


@cases(
    "conf",
    ("11 windows of a second", KIP_936),
    ("3 windows of 2 s, filters that overflow", FEW_LONG_WINDOWS),
    ("1 window", ONE_WINDOW),
    ("no quota but of one user", UNLIMITED),
)
@pytest.mark.parametrize("keys", [20, pytest.param(120, marks=pytest.mark.faults)])
def test_sql_says_what_the_rules_say(conf: ProducerIdsSection, keys: int) -> None:
    seen = made_up(conf.num_windows, conf.window_ms, keys) + EDGES
    got = rates(seen, conf)
    rules = expected(seen, conf)
    assert got.keys() == rules.keys()
    differing = []
    for at, row in got.items():
        want = rules[at] | of_tokens(row)
        numbers = {name: value for name, value in want.items() if value is not None}
        nulls = {name for name in want if row[name] is None}
        if nulls != want.keys() - numbers.keys() or {
            name: row[name] for name in numbers
        } != pytest.approx(numbers, rel=1e-9, abs=1e-9):
            differing.append((at, row, want))
        assert row["event_date"] == row["event_time"].astimezone(UTC).date()
    assert differing == []
    assert min(row["tokens"] for row in got.values() if row["tokens"] is not None) < -5
    assert max(row["throttle_time_avg_ms"] or 0 for row in got.values()) > 0
    assert any(row["new_ids"] != row["new_ids_exact"] for row in got.values()) == (
        conf is FEW_LONG_WINDOWS
    )


def of_tokens(row: dict[str, Any]) -> dict[str, Any]:
    """What follows from the tokens of a row; without a quota nothing is throttled."""
    tokens = row["tokens"]
    if tokens is None:
        return {"is_violating": False, "throttle_time_ms": None}
    throttle_ms = int(-tokens / row["quota_per_s"] * 1_000 + 0.5) if tokens < 0 else 0
    return {"is_violating": tokens < 0, "throttle_time_ms": throttle_ms}


# (when an id is named, how many of these sightings are new), by KIP-936's defaults.
DEFAULT_WINDOWS = [
    pytest.param([0, 400, 800, 1_200, 1_600], 1, id="in steady use"),
    pytest.param([0, 1_499], 1, id="again before 1.5 windows"),
    pytest.param([0, 1_500], 2, id="again after 1.5 windows"),
    pytest.param([999, 1_500], 2, id="again in the second half of the next window"),
    pytest.param([10_000 * n for n in range(12)], 12, id="once in ten seconds"),
]


@pytest.mark.parametrize(("times_ms", "new_ids"), DEFAULT_WINDOWS)
def test_by_default_filters_and_quota_are_those_of_the_kip(
    times_ms: list[int], new_ids: int
) -> None:
    rows = rates(sightings("bob", [(time_ms, 7) for time_ms in times_ms]), ProducerIdsSection())
    assert sum(row["new_ids"] for row in rows.values()) == new_ids
    assert sum(row["new_ids_exact"] for row in rows.values()) == new_ids


def test_without_a_quota_of_conf_nobody_violates_one() -> None:
    rows = rates(sightings("eve", [(n, n) for n in range(500)]), ProducerIdsSection()).values()
    assert max(row["rate_per_s"] for row in rows) > 40
    names = ("quota_per_s", "tokens", "throttle_time_ms", "throttle_time_avg_ms")
    assert {row[name] for row in rows for name in names} == {None}
    assert not any(row["is_violating"] for row in rows)


def test_columns_and_units() -> None:
    """A burst by hand: quota 0.5 per s saves up 5.5; 9 ids leave -3.5, and 7 s to wait."""
    rows = rates(sightings("p1", [(250, n) for n in range(9)] + [(999, 0)]), KIP_936)
    key = ("c", 1, "User:p1")
    assert sorted(rows) == [(key, second) for second in range(11)]
    first, last = rows[key, 0], rows[key, 10]
    assert list(first) == TABLES["producer_id_rates"].column_names
    assert {row["kind"] for row in rows.values()} == {"allocation"}
    shown = ("sightings", "new_ids", "rate_per_s", "tokens", "throttle_time_ms", "is_violating")
    assert [first[name] for name in shown] == [10, 9, pytest.approx(9 / 11), -3.5, 7_000, True]
    assert [last[name] for name in shown] == [0, 0, pytest.approx(9 / 11), 1.5, 0, False]


REQUEST = {
    "cluster_id": "c",
    "broker_id": 1,
    "api": "INIT_PRODUCER_ID",
    "principal": "User:alice",
    "event_time": at(START_MS + 7),
    "record_time": at(START_MS + 7),
    "producer_id": 5,
    "error_code": 0,
}


@cases(
    ("other", "count"),
    ("an id that was given out", {}, 1),
    ("no error code", {"error_code": None}, 1),
    ("an id of 0", {"api": "ADD_PARTITIONS_TO_TXN", "producer_id": 0}, 1),
    ("any API, any id", {"api": "PRODUCE", "producer_id": 2**62}, 1),
    ("an error", {"error_code": 14}, 0),
    ("an error with an id", {"error_code": 51, "producer_id": 6}, 0),
    ("no id", {"producer_id": None}, 0),
    ("the id that means none", {"producer_id": -1}, 0),
    ("no principal", {"principal": None}, 0),
)
def test_what_counts_as_a_sighting(other: dict[str, Any], count: int) -> None:
    rows = compute(
        result_of("producer_id_rates", Conf(producer_ids=KIP_936)), requests=[REQUEST | other]
    )
    assert sum(row["sightings"] for row in rows) == count


# (user, seconds far apart, seconds, first id, how many ids): bursts that leave a long debt.
BURSTS = st.lists(
    st.tuples(
        st.sampled_from(["low", "p1", "p1", "other"]),
        st.sampled_from([0, 0, 0, 86_390, 200_000]),
        st.integers(0, 200),
        st.integers(0, 12),
        st.integers(1, 15),
    ),
    min_size=3,
    max_size=15,
)
MINUTES = st.sets(
    st.sampled_from([1, 1, 2, 2, 3, 4, 1_440, 1_441, 3_334, 3_335]), min_size=1, max_size=3
)


@EXPENSIVE
@example(bursts=[("low", 0, 20, 0, 5), ("low", 0, 90, 7, 5)], minutes={1}, conf=KIP_936)
@given(
    bursts=BURSTS,
    minutes=MINUTES,
    conf=st.sampled_from([KIP_936, FEW_LONG_WINDOWS, ONE_WINDOW, UNLIMITED]),
)
def test_parts_of_time_and_parts_of_keys_equal_the_whole(
    bursts: list[tuple[str, int, int, int, int]], minutes: set[int], conf: ProducerIdsSection
) -> None:
    seen = [
        sighting
        for user, far_s, second, first_id, count in bursts
        for sighting in sightings(
            user, [(1_000 * (far_s + second) + n, first_id + n) for n in range(count)]
        )
    ]
    cuts = [at(START_MS + 60_000 * minute) for minute in sorted(minutes)]
    assert_parts_equal_whole(
        result_of("producer_id_rates", Conf(producer_ids=conf)), cuts, requests=requests(seen)
    )


def test_what_was_spent_before_the_carried_row_is_not_spent_again() -> None:
    """The row of second 60 owes 30 ids, those of seconds 55 and 60 included; later comes one id."""
    result = result_of(
        "producer_id_rates", Conf(producer_ids=ProducerIdsSection(quotas={"p1": 0.1}))
    )
    seen = requests(sightings("p1", [(55_000, 1), (60_000, 2), (125_000, 3)]))
    carried = {name: seen[0][name] for name in result.carry_key}
    carried |= {"kind": "allocation", "event_time": at(START_MS + 60_000), "tokens": -30.0}
    later = [TimeRange(at(START_MS + 120_000))]
    rows = compute(result, later, requests=seen, carried_rows=[carried])
    assert [row["tokens"] for row in rows][:2] == [-30 + 6.5 - 1, -30 + 6.6 - 1]


def test_the_declaration_says_how_far_back_the_rule_reads() -> None:
    result = result_of("producer_id_rates", Conf(producer_ids=FEW_LONG_WINDOWS))
    assert (result.lookback_s, result.carry_s) == (3, 86_400)


@pytest.mark.parametrize("quota", [0.0004, 1_000_001.0])
def test_a_quota_that_tokens_cannot_count_is_refused(quota: float) -> None:
    with pytest.raises(ConfigError, match=f"quota of alice is {quota}.* 0.001 and 1000000"):
        result_of(
            "producer_id_rates", Conf(producer_ids=ProducerIdsSection(quotas={"alice": quota}))
        )
