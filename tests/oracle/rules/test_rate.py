import pytest

from ...cases import cases
from .rate import Rate, SimpleRate

START = 1_700_000_000_000


def replay(rate: Rate, records: list[tuple[int, float]]) -> Rate:
    for after_ms, value in records:
        rate.record(value, START + after_ms)
    return rate


@cases(
    ("records", "at_ms", "expected"),
    ("nothing recorded is no rate", [], 0, 0.0),
    ("a first burst counts ten empty windows", [(0, 50)], 0, 5.0),
    ("the running window adds what has passed", [(0, 50)], 999, 50 / 10.999),
    ("the last ms before it is too old", [(0, 50)], 10_999, 50 / 10.999),
    ("eleven windows later it is forgotten", [(0, 50)], 11_000, 0.0),
    ("a window lives by its last record", [(0, 1), (999, 1)], 11_500, 2 / 11.5),
    ("windows begin at records", [(s * 1_000 + 300, 10) for s in range(5)], 4_900, 50 / 10.6),
    ("an earlier time fills the newest window", [(0, 10), (-500, 10)], 0, 2.0),
    ("measured before its start, Kafka rounds to 0", [(0, 10)], -1_500, 10 / 9.5),
)
def test_rate_of_eleven_seconds(records, at_ms, expected):
    assert replay(Rate(), records).measure(START + at_ms) == pytest.approx(expected, rel=1e-12)


@cases(
    ("records", "at_ms", "expected"),
    ("nothing recorded is no rate", [], 0, 0.0),
    ("the first window counts as whole", [(0, 3_000)], 0, 3_000.0),
    ("then only time that has passed counts", [(0, 3_000)], 2_000, 1_500.0),
    ("two windows, their mean", [(0, 1_000), (1_000, 3_000)], 2_000, 2_000.0),
    ("eleven windows later it is forgotten", [(0, 3_000)], 11_000, 0.0),
    ("measured before its start, one window", [(0, 3_000)], -5_000, 3_000.0),
)
def test_simple_rate_of_eleven_seconds(records, at_ms, expected):
    measured = replay(SimpleRate(), records).measure(START + at_ms)
    assert measured == pytest.approx(expected, rel=1e-12)


def test_one_window_of_no_age_counts_as_one_ms():
    assert replay(Rate(1, 1_000), [(0, 5)]).measure(START) == 5_000.0


def test_a_measurement_begins_the_first_window():
    rate = SimpleRate()
    rate.measure(START)
    rate.record(10, START + 500)
    assert rate.measure(START + 2_000) == 5.0


def test_slots_are_used_again_after_a_long_run():
    rate = replay(Rate(3, 100), [(i * 100, 1) for i in range(1_000)])
    assert rate.measure(START + 99_900) == pytest.approx(3 / 0.2)


@pytest.mark.parametrize("kind", [Rate, SimpleRate])
@cases(
    ("num_windows", "window_ms", "message"),
    ("no windows", 0, 1_000, "num_windows must be at least 1, got 0"),
    ("windows of no length", 11, -5, "window_ms must be at least 1, got -5"),
)
def test_refuses(kind, num_windows, window_ms, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        kind(num_windows, window_ms)
