"""Whether a cluster is worse after a change, by everybody else's latency, errors and replicas."""

import random
import re
from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules.cluster_health import Pair, Window, worse

from ... import case_tables
from ...cases import cases


def users(count: int, errors: float = 0, requests: float = 100) -> dict[str, tuple[float, float]]:
    return {f"User:{n}": (requests, errors) for n in range(count)}


def failing(failed: int, well: int) -> Window:
    """A window in which some principals have errors, and so many more have none."""
    return Window(15, 0, users(failed, 50), well)


def a_week(pair: Pair) -> list[Pair]:
    return [pair] * 168


BEFORE = Window(30, 0, users(300), 0, replicas=3000, out_of_sync=0)
AFTER = Window(15, 0, {}, 0, replicas=3000)


@cases(
    ("before", "after", "why"),
    *case_tables.rows(
        __file__,
        "worse_by_what_is_always_too_much",
        replace,
        Window,
        failing,
        users,
        BEFORE=BEFORE,
        AFTER=AFTER,
    ),
)
def test_worse_by_what_is_always_too_much(before: Window, after: Window, why: str | None) -> None:
    actual = worse(before, after)
    assert (actual is None) if why is None else re.search(why, actual or "")


USUAL = Window(15, 0, {}, 300, replicas=3000)


@cases(
    ("usual", "after", "is_worse"),
    ("minutes: never slow", USUAL, replace(USUAL, slow_minutes=4), True),
    ("as slow", replace(USUAL, slow_minutes=6), replace(USUAL, slow_minutes=6), False),
    ("all are slow", replace(USUAL, slow_minutes=6), Window(15, 15), True),
    ("replicas: never", USUAL, replace(USUAL, out_of_sync=20), True),
    ("as usual", replace(USUAL, out_of_sync=60), replace(USUAL, out_of_sync=60), False),
    ("errors: a tenth of principals", USUAL, failing(31, 269), True),
    ("errors: of as many as ever", failing(60, 240), failing(60, 240), False),
    ("errors: too few", USUAL, failing(29, 271), False),
)
def test_worse_by_the_usual_spread_of_the_cluster(
    usual: Window, after: Window, is_worse: bool
) -> None:
    noise = [BEFORE, replace(BEFORE, minutes=31)]
    week = [(before, usual) for before in noise for _ in range(84)]
    assert (worse(BEFORE, after, week) is not None) is is_worse


def test_a_wide_spread_takes_more() -> None:
    calm = [(BEFORE, failing(n, 300 - n)) for n in (2, 3, 4)] * 56
    noisy = [(BEFORE, failing(n, 300 - n)) for n in (0, 20, 40)] * 56
    after = failing(60, 240)
    assert worse(BEFORE, after, calm)
    assert worse(BEFORE, after, noisy) is None


def test_two_days_of_windows_are_a_history() -> None:
    after = failing(50, 250)
    assert worse(BEFORE, after, [(BEFORE, USUAL)] * 47) is None
    assert worse(BEFORE, after, [(BEFORE, USUAL)] * 48)


def test_windows_without_a_measurement_are_no_history() -> None:
    unmeasured = [(BEFORE, Window(15, 0))] * 168
    assert worse(BEFORE, failing(50, 250), unmeasured) is None
    assert worse(BEFORE, Window(15, 4), [(BEFORE, failing(0, 9))] * 168) is not None
    assert worse(BEFORE, Window(15, 4), [(BEFORE, Window(well=9))] * 168) is None


def test_history_is_read_only_if_the_cluster_may_be_worse() -> None:
    def unread() -> Pair:
        raise AssertionError

    assert worse(BEFORE, USUAL, (unread() for _ in range(1))) is None
    with pytest.raises(AssertionError):
        worse(BEFORE, failing(100, 200), (unread() for _ in range(1)))


@cases("is_known", ("a week is known", True), ("no history", False))
@pytest.mark.parametrize("share", [0.002, 0.01, 0.03])
def test_ordinary_deploys_halt_no_plan_in_100_days(share: float, is_known: bool) -> None:
    """1,000 principals, and 24 windows a day that are watched. In each, some principals deploy."""
    draw = random.Random(f"{share}")
    names = list(users(1000))
    shares = {name: draw.uniform(0, 0.02) for name in names}
    before = Window(30, 0, {name: (1000, 1000 * each) for name, each in shares.items()})

    def deploys() -> Window:
        failed = [name for name in names if draw.random() < share]
        errors = {name: 1000 * (shares[name] + draw.uniform(0.05, 0.4)) for name in failed}
        return Window(15, 0, {n: (1000, e) for n, e in errors.items()}, 1000 - len(failed))

    week = [(before, deploys()) for _ in range(168)] if is_known else []
    halts = [n for n in range(100 * 24) if worse(before, deploys(), week)]
    assert len(halts) <= 1
    # The same cluster halts if a third of its principals meet failing brokers.
    third = dict.fromkeys(names[:333], (1000.0, 300.0))
    assert worse(before, Window(15, 0, third, 667), week)


@given(
    st.tuples(st.integers(1, 10**6), st.integers(0, 10**6)),
    st.tuples(st.integers(1, 10**6), st.integers(0, 10**6)),
    st.booleans(),
)
def test_two_helper_logins_cannot_undo_a_limit(
    first: tuple[int, int], second: tuple[int, int], is_known: bool
) -> None:
    before = replace(BEFORE, errors=users(300) | dict.fromkeys(("User:h1", "User:h2"), (20.0, 0.0)))
    after = Window(15, 0, {"User:h1": first, "User:h2": second}, 300)
    assert worse(before, after, a_week((BEFORE, USUAL)) if is_known else []) is None


COUNTS = st.tuples(st.integers(20, 1000), st.integers(0, 20))
WINDOWS = st.builds(
    Window,
    st.integers(10, 30),
    st.integers(0, 10),
    st.dictionaries(st.sampled_from([*users(9)]), COUNTS),
    st.integers(0, 9),
    st.none() | st.integers(5, 9),
    st.integers(0, 5),
)


@given(WINDOWS, st.lists(st.tuples(WINDOWS, WINDOWS)))
def test_what_stays_as_it_is_is_not_worse(window: Window, earlier: list[Pair]) -> None:
    assert worse(window, window, chain(earlier * 60)) is None
