import pickle
import tracemalloc
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.producer_ids import FLAGGED, ORDER, SIGHTINGS, flag_new_ids
from quotaflow.udfs.rules.timed_filter import TimedBloomFilter

from ..cases import cases

HOUR_MS = 3_600_000
START = 1_700_000_000_000 // HOUR_MS * HOUR_MS
BOUNDS = (1_000, 1e-6, HOUR_MS)


def sighting(principal="User:alice", after_ms=0, producer_id=1, *, broker_id=1, cluster="lkc-1"):
    return (cluster, broker_id, principal, START + after_ms, producer_id)


def batch(rows):
    columns = list(zip(*rows, strict=True)) or [()] * len(SIGHTINGS)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SIGHTINGS, strict=True)]
    return pa.record_batch(arrays, schema=SIGHTINGS)


def flags(*batches, bounds=BOUNDS):
    out = flag_new_ids(*bounds)(iter(batches))
    return [flag for flagged in out for flag in flagged.column("is_new").to_pylist()]


@cases(
    ("rows", "expected"),
    ("no rows", [], []),
    ("one sighting is new", [sighting()], [True]),
    ("a repeat is not", [sighting(), sighting(after_ms=5)], [True, False]),
    ("nor one of the same ms", [sighting(), sighting()], [True, False]),
    ("forgotten: new again", [sighting(), sighting(after_ms=HOUR_MS * 3 // 2)], [True, True]),
    ("a broker sees alone", [sighting(broker_id=1), sighting(broker_id=2)], [True, True]),
    ("so does a principal", [sighting("User:alice"), sighting("User:bob")], [True, True]),
    ("and a cluster", [sighting(cluster="lkc-1"), sighting(cluster="lkc-2")], [True, True]),
    (
        "no principal is a key like others",
        [sighting("User:alice"), sighting(None), sighting(None, 5)],
        [True, True, False],
    ),
    ("any 64-bit id will do", [sighting(producer_id=-1)], [True]),
)
def test_is_new(rows, expected):
    assert flags(batch(rows)) == expected


def test_a_key_goes_on_in_the_next_batch():
    assert flags(batch([sighting()]), batch([]), batch([sighting(after_ms=1)])) == [True, False]


def test_a_new_key_may_begin_with_a_batch():
    assert flags(batch([sighting("User:alice")]), batch([sighting("User:bob")])) == [True, True]


def test_no_batches_give_none():
    assert flags() == []


def test_rows_come_out_as_they_came_in():
    rows = [sighting(), sighting(after_ms=3, producer_id=9)]
    (flagged,) = flag_new_ids(*BOUNDS)(iter([batch(rows)]))
    assert flagged.schema == FLAGGED
    assert flagged.select(SIGHTINGS.names) == batch(rows)


def test_further_columns_pass_through():
    wider = batch([sighting()]).append_column("is_new_exact", pa.array([True]))
    (flagged,) = flag_new_ids(*BOUNDS)(iter([wider]))
    assert flagged.column_names == [*SIGHTINGS.names, "is_new_exact", "is_new"]


ROWS = st.lists(
    st.builds(
        sighting,
        st.sampled_from(["User:alice", "User:bob", "User:carol"]),
        st.integers(0, 4).map(lambda halves: halves * HOUR_MS // 2),
        st.integers(0, 3),
        broker_id=st.integers(1, 2),
    ),
    max_size=60,
).map(sorted)


@given(ROWS, st.sets(st.integers(0, 60)))
def test_answers_are_the_rule_s_wherever_batches_are_cut(rows, cuts):
    bounds = (3, 0.3, HOUR_MS)
    seen: dict[tuple[Any, ...], TimedBloomFilter] = {}
    expected = []
    for *key, event_ms, producer_id in rows:
        rule = seen.setdefault(tuple(key), TimedBloomFilter(*bounds))
        expected.append(rule.first_sighting(producer_id, event_ms))
    edges = [0, *sorted(cut for cut in cuts if cut < len(rows)), len(rows)]
    batches = [batch(rows[a:b]) for a, b in pairwise(edges)]
    assert flags(*batches, bounds=bounds) == expected


def test_a_slice_of_a_batch_is_read_from_its_own_start():
    rows = [sighting("User:alice"), sighting("User:bob"), sighting("User:bob", 1)]
    assert flags(batch(rows).slice(1)) == [True, False]


@pytest.mark.faults
def test_memory_is_the_filter_s_and_a_batch_s_however_many_ids_come():
    def endless(count):
        for start in range(0, count, 1_000):
            yield batch([sighting(after_ms=start, producer_id=start + n) for n in range(1_000)])

    peaks = []
    for count in (5_000, 50_000):
        tracemalloc.start()
        new = sum(
            sum(out.column("is_new").to_pylist()) for out in flag_new_ids(*BOUNDS)(endless(count))
        )
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert 0 < new <= count
    assert peaks[1] < 1.2 * peaks[0]


def test_it_travels_to_workers():
    travelled = pickle.loads(pickle.dumps(flag_new_ids(*BOUNDS)))
    (flagged,) = travelled(iter([batch([sighting()])]))
    assert flagged.column("is_new").to_pylist() == [True]


def test_the_order_is_that_of_the_columns():
    assert tuple(SIGHTINGS.names) == ORDER


@pytest.mark.parametrize("name", ["event_ms", "producer_id"])
def test_a_null_time_or_id_is_the_caller_s_mistake(name):
    row = dict(zip(ORDER, sighting(), strict=True)) | {name: None}
    with pytest.raises(ValueError, match=f"^{name} must not be null, got 1 null rows$"):
        flags(batch([tuple(row.values())]))


@cases(
    ("bounds", "message"),
    ("no items", (0, 0.01, 1), "expected_items must be at least 1, got 0"),
    ("rate", (1, 2, 1), "false_positive_rate must be above 0 and below 1, got 2"),
    ("no window", (1, 0.01, 0), "window_ms must be at least 1, got 0"),
)
def test_bad_bounds_are_told_before_any_row(bounds, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        flag_new_ids(*bounds)
