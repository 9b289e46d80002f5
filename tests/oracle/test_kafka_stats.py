"""Rules against the classes of Kafka whose arithmetic they claim, on random sequences."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quotaflow.udfs.rules.quota_rate import Rate, SimpleRate
from quotaflow.udfs.rules.token_bucket import TokenBucket

START = 1_700_000_000_000

VALUES = st.one_of(
    st.sampled_from([0.0, 1.0, 1e-9, 1e15, 1e300, 2.0**63]),
    st.floats(0, 1e9),
    st.integers(0, 10_000).map(float),
)


@st.composite
def sequences(draw, windows_ms=(1, 7, 100, 1_000, 3_600_000), values=VALUES):
    """Windows, and steps (value to record, or None to measure; time): see `step` for the times."""
    num_windows = draw(st.sampled_from([1, 2, 3, 11, 100]))
    window_ms = draw(st.sampled_from(windows_ms))
    rate_period_ms = num_windows * window_ms
    step = st.one_of(
        st.sampled_from(
            [0, 1, window_ms - 1, window_ms, window_ms + 1, rate_period_ms - 1, rate_period_ms]
        ),
        st.integers(0, 2 * window_ms),
        st.integers(-3 * window_ms, -1),
        st.sampled_from([-2 * rate_period_ms, 20 * rate_period_ms, 10**10]),
    )
    time_ms = draw(st.sampled_from([0, 1, START, START + 123]))
    steps = []
    for value, step_ms in draw(st.lists(st.tuples(st.none() | values, step), max_size=50)):
        time_ms += step_ms
        steps.append((value, time_ms))
    return num_windows, window_ms, [*steps, (None, time_ms)]


def ours(rule, steps):
    measured = []
    for value, time_ms in steps:
        if value is None:
            measured.append(rule.measure(time_ms))
        else:
            rule.record(value, time_ms)
    return measured


def theirs(oracle, subject, steps):
    commands = [
        f"measure {time_ms}" if value is None else f"record {value!r} {time_ms}"
        for value, time_ms in steps
    ]
    return oracle.measure([f"begin {subject}", *commands])


def agrees(expected):
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


many = settings(max_examples=settings().max_examples * 8)


@many
@given(sequences())
def test_simple_rate_is_kafka_s(oracle, drawn):
    num_windows, window_ms, steps = drawn
    measured = ours(SimpleRate(num_windows, window_ms), steps)
    assert measured == agrees(theirs(oracle, f"simple_rate {num_windows} {window_ms}", steps))


@many
@given(sequences())
@example((11, 1_000, [(100.0, START), (None, START), (None, START + 9_000)]))
def test_rate_is_kafka_s(oracle, drawn):
    num_windows, window_ms, steps = drawn
    measured = ours(Rate(num_windows, window_ms), steps)
    assert measured == agrees(theirs(oracle, f"rate {num_windows} {window_ms}", steps))


@many
@given(sequences(windows_ms=(100, 1_000), values=st.integers(0, 10_000).map(float)))
def test_the_throttle_is_the_broker_s(oracle, drawn):
    num_windows, window_ms, steps = drawn
    rate, last_ms, measured = Rate(num_windows, window_ms), 0, []
    for value, time_ms in steps:
        if value is None:
            measured.append(last_ms)
        else:
            rate.record(value, time_ms)
            last_ms = rate.throttle_ms(7.0, time_ms)
    subject = f"throttle_time {num_windows} {window_ms} 7.0"
    assert measured == agrees(theirs(oracle, subject, steps))


@many
@given(sequences(), st.one_of(st.sampled_from([0.01, 1.0, 5.0, 1e12]), st.floats(1e-3, 1e6)))
@example((11, 1_000, [(100.0, START), (None, START), (None, START + 9_000)]), 5.0)
def test_token_bucket_is_kafka_s(oracle, drawn, quota):
    num_windows, window_ms, steps = drawn
    measured = ours(TokenBucket(quota, num_windows, window_ms), steps)
    subject = f"token_bucket {num_windows} {window_ms} {quota!r}"
    assert measured == agrees(theirs(oracle, subject, steps))


@many
@given(sequences(windows_ms=(1_000, 5_000), values=st.integers(0, 2**50)))
def test_the_broker_s_replication_quota_is_a_simple_rate(oracle, drawn):
    num_windows, window_ms, steps = drawn
    measured = ours(SimpleRate(num_windows, window_ms), steps)
    assert measured == agrees(theirs(oracle, f"replication_quota {num_windows} {window_ms}", steps))
