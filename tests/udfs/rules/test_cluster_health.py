"""Whether a cluster is worse after a change, by everybody else's latency, errors and replicas."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules.cluster_health import Window, worse

WELL = Window(30, 0, {"User:a": (100, 0), "User:b": (100, 2)}, 0)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        pytest.param(WELL, WELL, None, id="as before"),
        pytest.param(Window(), Window(), None, id="nothing is known"),
        pytest.param(WELL, Window(15, 1), None, id="one bad minute"),
        pytest.param(WELL, Window(15, 2), "2 of 15 minutes, and were in 0 of 30", id="two"),
        pytest.param(Window(30, 20), Window(15, 10), None, id="bad before, and as bad now"),
        pytest.param(Window(30, 3), Window(15, 9), "degraded in 9 of 15", id="bad, and worse"),
        pytest.param(Window(), Window(15, 3), "degraded in 3", id="nothing is known of before"),
        pytest.param(WELL, Window(15, 0, {}, 3), "3 replicas are out of sync, and 0", id="isr"),
        pytest.param(Window(30, 0, {}, 3), Window(15, 0, {}, 3), None, id="still out of sync"),
        pytest.param(Window(30, 0, {}, None), Window(15, 0, {}, 3), None, id="no snapshot before"),
        pytest.param(
            WELL,
            Window(15, 0, {"User:a": (100, 50), "User:b": (100, 40)}),
            "2 of 2 other principals have more errors, such as User:a: 50% of its requests, and 0%",
            id="errors of all",
        ),
        pytest.param(
            WELL,
            Window(15, 0, {"User:a": (100, 99), "User:b": (100, 2)}),
            None,
            id="errors of one alone say nothing",
        ),
        pytest.param(
            Window(30, 0, {"User:a": (100, 0)}),
            Window(15, 0, {"User:a": (100, 50)}),
            "1 of 1 other principal has",
            id="unless there is one alone",
        ),
        pytest.param(
            Window(30, 0, {"User:a": (100, 0)}),
            Window(15, 0, {"User:a": (10, 10)}),
            None,
            id="few requests say nothing",
        ),
        pytest.param(
            Window(30, 0, {}),
            Window(15, 0, {"User:a": (100, 99)}),
            None,
            id="new",
        ),
    ],
)
def test_worse(before: Window, after: Window, why: str | None) -> None:
    actual = worse(before, after)
    assert (actual is None) if why is None else re.search(why, actual or "")


COUNTS = st.tuples(st.integers(20, 1000), st.integers(0, 20))
WINDOWS = st.builds(
    Window,
    st.integers(10, 30),
    st.integers(0, 10),
    st.dictionaries(st.sampled_from(["User:a", "User:b", "User:c"]), COUNTS),
    st.none() | st.integers(0, 5),
)


@given(WINDOWS)
def test_what_stays_as_it_is_is_not_worse(window: Window) -> None:
    assert worse(window, window) is None
