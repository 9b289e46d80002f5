import pickle
from itertools import pairwise
from operator import itemgetter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.alerts import (
    ALERT_ID,
    EVENT,
    KEY,
    LAST_READING,
    ORDER,
    READINGS,
    alert_id,
    find_alerts,
)
from quotaflow.udfs.rules.alert import ThresholdRule

from .. import case_tables
from ..cases import cases
from .alert_events import walk

RULES = {
    "slow": ThresholdRule("slow", bound=10, clear=9, for_ms=1_000, stale_ms=5_000),
    "low": ThresholdRule("low", bound=10, clear=11, for_ms=0, stale_ms=60_000, is_above=False),
}
SCHEMA = pa.schema([*READINGS, *EVENT, pa.field("client_id", pa.string())])
EVENTS = SCHEMA.append(LAST_READING).append(ALERT_ID)


def reading(event_ms, value, series_id=1, rule="slow", client_id="app"):
    return {
        "cluster_id": "c",
        "rule": rule,
        "series_id": series_id,
        "event_ms": event_ms,
        "value": float(value),
        "is_carried": False,
        "client_id": client_id,
    }


def carried(event_ms, state, series_id=1, rule="slow", **fields):
    row = reading(event_ms, 12, series_id, rule)
    breach = {"first_breach_ms": event_ms - 1_001, "peak_value": 12.0, "points": 2}
    return row | {"is_carried": True, "state": state} | breach | fields


def events(rows, cuts=()):
    ordered = sorted(rows, key=itemgetter(*ORDER))
    bounds = [0, *sorted(cut % (len(rows) + 1) for cut in cuts), len(rows)]
    batches = [pa.RecordBatch.from_pylist(ordered[a:b], schema=SCHEMA) for a, b in pairwise(bounds)]
    out = find_alerts(RULES)(iter(batches))
    event_rows = [row for batch in out for row in batch.to_pylist()]
    assert all(batch.schema == EVENTS for batch in find_alerts(RULES)(iter(batches)))
    return event_rows


def times_and_states(rows):
    return [(row["series_id"], row["event_ms"], row["state"]) for row in events(rows)]


def test_an_event_names_the_reading_it_rests_on():
    rows = [reading(0, 11), reading(2_000, 12), reading(4_000, 11, client_id="renamed")]
    rows.append(reading(60_000, 1, client_id="much later"))
    opened, closed = events(rows)
    assert opened | {"state": "opened", "value": 12, "peak_value": 12, "points": 2} == opened
    stale = {"event_ms": 9_000, "reason": "stale", "value": 11, "client_id": "renamed"}
    assert closed | stale | {"first_breach_ms": 0, "peak_value": 12, "points": 3} == closed


def test_series_and_rules_are_apart():
    rows = [reading(at, value, series) for series, value in ((1, 11), (2, 1)) for at in (0, 1_500)]
    rows += [reading(at, 1, 2, "low") for at in (0, 1_500)]
    assert times_and_states(rows) == [
        (2, 1_500, "opened"),
        (2, 61_500, "closed"),
        (1, 1_500, "opened"),
        (1, 6_500, "closed"),
    ]


@cases(("rows", "expected"), *case_tables.rows(__file__, "events", reading, carried))
def test_events(rows, expected):
    assert times_and_states(rows) == expected


@given(
    points=st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from([8, 9, 10, 11, 12]), st.sampled_from([1, 2])),
        max_size=60,
        unique_by=itemgetter(0, 2),
    ),
    cuts=st.lists(st.integers(0, 60), max_size=4),
)
def test_batches_may_be_cut_anywhere(points, cuts):
    rows = [reading(700 * at, value, series) for at, value, series in points]
    results = {
        series: [
            (row["event_ms"], row["state"])
            for row in events(rows, cuts)
            if row["series_id"] == series
        ]
        for series in (1, 2)
    }
    for series, of_series in results.items():
        alone = sorted(
            (700 * at, value) for at, value, own_series in points if own_series == series
        )
        expected = [(event.time_ms, str(event.state)) for event in walk(RULES["slow"], alone)]
        assert of_series == expected


@pytest.mark.parametrize(
    ("identity", "digits"),
    [
        (("c", "slow", 1, 0), "6a0f0512bc09cb86"),
        (("", "slow", 0, -1), "c4d9dbea904d087a"),
        (
            ("s-vog3jyR1aGPJMD-rdmiQ", "producer-queue-time", -5270498306774157605, 1795262400123),
            "e5288af1a504e9e6",
        ),
        (("ünï-クラスタ-🚀", "a.b_c-d", 2**63 - 1, 1795262400000), "68617b40dd11107f"),
        (("c", 64 * "x", -(2**63), 1), "f16a71440d7e86d6"),
        (("cluster-1", "rule1", -92081000000000000, 1795262400001), "458092823ab8427b"),
        ((2 * "cluster-2", "rule2", -84162000000000000, 1795262400002), "12732e7b168be652"),
        ((3 * "cluster-3", "rule3", -76243000000000000, 1795262400003), "6f5c1214922bb14d"),
        ((4 * "cluster-4", "rule4", -68324000000000000, 1795262400004), "b56829e9ad97eda9"),
        (("", "rule35", 177165000000000000, 1795262400035), "0b7c7cac465b7061"),
    ],
)
def test_the_identity_of_an_alert_is_what_spark_calculates(identity, digits):
    """Digits from Spark 4.2: lower(lpad(hex(xxhash64(cluster, rule, series, first)), 16, '0'))."""
    assert alert_id(*identity) == digits


def test_an_event_has_the_identity_of_its_alert():
    rows = events([reading(0, 11), reading(2_000, 12), reading(3_000, 1)])
    assert {row["alert_id"] for row in rows} == {alert_id("c", "slow", 1, 0)}


def test_it_can_be_sent_to_workers():
    assert pickle.loads(pickle.dumps(find_alerts(RULES)))
    assert set(KEY) < set(READINGS.names)
