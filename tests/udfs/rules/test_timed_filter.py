import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules.timed_filter import BloomShape, TimedBloomFilter

from ...cases import cases

HOUR_MS = 3_600_000
START = 1_700_000_000_000 // HOUR_MS * HOUR_MS


class ExactSets:
    """The life cycle without a filter: the ids of each window, and the latest time so far."""

    def __init__(self, window_ms: int) -> None:
        self.window_ms = window_ms
        self.ids: dict[int, set[int]] = {}
        self.now_ms: int | None = None

    def put(self, value: int, time_ms: int) -> None:
        self._move_to(time_ms)
        self.ids.setdefault(self.now_ms // self.window_ms, set()).add(value)

    def contains(self, value: int, time_ms: int) -> bool:
        self._move_to(time_ms)
        window, age_ms = divmod(self.now_ms, self.window_ms)
        live = [window, window - 1] if age_ms < self.window_ms / 2 else [window]
        return any(value in self.ids.get(index, ()) for index in live)

    def _move_to(self, time_ms: int) -> None:
        self.now_ms = time_ms if self.now_ms is None else max(self.now_ms, time_ms)


@st.composite
def sightings(draw):
    """A window, and (id, time): equal, falling back, on the edges, and far apart."""
    window_ms = draw(st.sampled_from([1, 2, 3, 10, 999, 1_000, HOUR_MS]))
    half = window_ms // 2
    edge = st.sampled_from([0, 1, half, half + 1, window_ms - 1, window_ms, 2 * window_ms])
    step = st.one_of(edge, st.integers(-2 * window_ms, 3 * window_ms), edge.map(lambda ms: -ms))
    time_ms = draw(st.sampled_from([-window_ms, 0, START]))
    steps = draw(st.lists(st.tuples(st.integers(0, 5), step), max_size=60))
    walk = []
    for value, step_ms in steps:
        time_ms += step_ms
        walk.append((value, time_ms))
    return window_ms, walk


@given(sightings())
def test_a_generous_filter_answers_as_exact_sets_do(drawn):
    window_ms, walk = drawn
    seen, exact = TimedBloomFilter(1_000, 1e-6, window_ms), ExactSets(window_ms)
    for value, time_ms in walk:
        assert seen.first_sighting(value, time_ms) is not exact.contains(value, time_ms)
        exact.put(value, time_ms)


@given(sightings())
def test_a_tiny_filter_errs_only_towards_having_seen(drawn):
    window_ms, walk = drawn
    seen, exact = TimedBloomFilter(1, 0.5, window_ms), ExactSets(window_ms)
    for value, time_ms in walk:
        is_new, was_put = seen.first_sighting(value, time_ms), exact.contains(value, time_ms)
        assert not (is_new and was_put)
        exact.put(value, time_ms)


@given(sightings(), st.integers(0, 60))
def test_an_answer_does_not_depend_on_what_was_seen_before_one_and_a_half_windows(drawn, cut):
    window_ms, walk = drawn
    walk = sorted(walk, key=lambda sighting: sighting[1])
    whole, later = TimedBloomFilter(3, 0.3, window_ms), TimedBloomFilter(3, 0.3, window_ms)
    start_ms = walk[cut][1] if cut < len(walk) else 0
    for index, (value, time_ms) in enumerate(walk):
        is_new = whole.first_sighting(value, time_ms)
        if index >= cut:
            later_is_new = later.first_sighting(value, time_ms)
            assert later_is_new == is_new or 2 * (time_ms - start_ms) <= 3 * window_ms


@cases(
    ("seen_ms", "query_ms", "remembered"),
    ("from a window's start: 1.5 windows", 0, HOUR_MS * 3 // 2 - 1, True),
    ("and not a ms more", 0, HOUR_MS * 3 // 2, False),
    ("from its end: half a window", HOUR_MS - 1, HOUR_MS * 3 // 2 - 1, True),
    ("forgotten when its successor is half over", HOUR_MS - 1, HOUR_MS * 3 // 2, False),
    ("the successor's own stay", HOUR_MS, HOUR_MS * 3 // 2, True),
    ("two windows later nothing is left", 0, HOUR_MS * 2, False),
    ("a late time sees the filters that exist", HOUR_MS, HOUR_MS - 1, True),
)
def test_an_id_is_remembered_half_to_one_and_a_half_windows(seen_ms, query_ms, remembered):
    seen = TimedBloomFilter(100, 0.001, HOUR_MS)
    assert seen.first_sighting(4_711, START + seen_ms)
    assert seen.first_sighting(4_711, START + query_ms) is not remembered


def test_an_id_in_steady_use_is_new_once():
    seen = TimedBloomFilter(100, 0.001, HOUR_MS)
    every_ms = HOUR_MS // 2
    assert [seen.first_sighting(7, START + i * every_ms) for i in range(10)] == [True] + [False] * 9


def test_a_late_sighting_goes_into_the_newest_filter():
    seen = TimedBloomFilter(100, 0.001, HOUR_MS)
    assert seen.first_sighting(1, START + HOUR_MS)
    assert seen.first_sighting(2, START)
    assert not seen.first_sighting(2, START + HOUR_MS * 5 // 2 - 1)


@cases(
    ("expected_items", "false_positive_rate", "bits", "hashes"),
    ("a thousand at one percent", 1_000, 0.01, 9_586, 7),
    ("a million at one per mille", 1_000_000, 0.001, 14_377_588, 10),
    ("one at a half", 1, 0.5, 2, 1),
    ("at least one bit and one hash", 1, 0.99, 1, 1),
)
def test_shape_is_the_textbook_s(expected_items, false_positive_rate, bits, hashes):
    assert BloomShape.for_capacity(expected_items, false_positive_rate) == BloomShape(bits, hashes)


@cases(
    ("items", "rate"),
    ("few items", 20, 0.01),
    ("few items and a low rate", 100, 0.001),
    ("many items", 5_000, 0.01),
)
def test_false_positives_keep_the_rate_when_full(items, rate):
    rounds, questions = 20, 10_000
    wrong, shape = 0, BloomShape.for_capacity(items, rate)
    for first in range(0, rounds * 1_000_000, 1_000_000):
        own = range(first, first + items)
        taken = {position for value in own for position in shape.positions(value)}
        strangers = range(first + items, first + items + questions)
        wrong += sum(taken.issuperset(shape.positions(value)) for value in strangers)
    assert wrong / (rounds * questions) < 1.5 * rate


@cases(
    ("bounds", "message"),
    ("no items", (0, 0.01, 1), "expected_items must be at least 1, got 0"),
    ("never wrong", (1, 0.0, 1), "false_positive_rate must be above 0 and below 1, got 0.0"),
    ("always wrong", (1, 1, 1), "false_positive_rate must be above 0 and below 1, got 1"),
    ("no window", (1, 0.01, 0), "window_ms must be at least 1, got 0"),
)
def test_refuses(bounds, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        TimedBloomFilter(*bounds)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_refuses_what_is_no_64_bit_id(value):
    with pytest.raises(ValueError, match=f"^value must be a signed 64-bit integer, got {value}$"):
        TimedBloomFilter(1, 0.01, 1).first_sighting(value, 0)
