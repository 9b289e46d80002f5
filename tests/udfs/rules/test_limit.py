"""When a limit is set, lowered, kept and given back, and how long its lease is."""

import math
from datetime import timedelta

import hypothesis as hyp
import pytest
from hypothesis import strategies as st

from quotaflow.udfs.rules import limit
from quotaflow.udfs.rules.limit import (
    AT_BOUND,
    AT_FLOOR,
    EFFECT_PENDING,
    FIRST,
    NO_GAIN,
    OFFENCE_UNKNOWN,
    PAUSED,
    RAISE,
    REVERT,
    STEP_DOWN,
    STEP_UP,
    STEP_WITHOUT_GAIN,
    TIGHTEN,
    LimitBounds,
    LimitWrite,
    OffenderLimit,
)

from ...delta_tables import NOON

HOUR = timedelta(hours=1)
BOUNDS = LimitBounds()


def wrote(
    hours_ago: float,
    before: float | None,
    after: float | None,
    offence: float | None = 10.0,
    direction: str | None = TIGHTEN,
) -> LimitWrite:
    return LimitWrite(NOON - hours_ago * HOUR, before, after, offence, direction)


def ended(hours_ago: float, before: float | None = 8.0) -> LimitWrite:
    """The end of a lease."""
    return wrote(hours_ago, before, None, None, None)


def surrendered(hours_ago: float) -> LimitWrite:
    """A limit without gain is given back."""
    return wrote(hours_ago, 8.0, None, 10.0, REVERT)


def offender(
    *writes: LimitWrite, offence: float | None = 10.0, applied: float | None = None, **other: float
) -> OffenderLimit:
    values = {"first": 8.0, "least": 1.0} | other
    return OffenderLimit(applied=applied, offence=offence, lease=HOUR, writes=writes, **values)


CASES = {
    "no limit yet": (offender(), TIGHTEN, 8.0, FIRST),
    "others need more than the first value": (offender(least=20.0), TIGHTEN, 20.0, FIRST),
    "somebody else set less": (offender(applied=5.0), None, None, AT_FLOOR),
    "somebody else set more": (offender(applied=10.0), TIGHTEN, 8.0, FIRST),
    "somebody else set far more": (offender(applied=50.0), TIGHTEN, 25.0, FIRST),
    "an offence of no size": (offender(offence=None), None, None, OFFENCE_UNKNOWN),
    "an offence that is no number": (offender(offence=math.nan), None, None, OFFENCE_UNKNOWN),
    "its effect cannot show yet": (
        offender(wrote(0.5, None, 8.0), offence=10.0),
        *(None, None, EFFECT_PENDING),
    ),
    "no effect": (offender(wrote(1, None, 8.0), offence=10.0), REVERT, None, NO_GAIN),
    "a twentieth less": (offender(wrote(1, None, 8.0), offence=9.5), REVERT, None, NO_GAIN),
    "worse": (offender(wrote(1, None, 8.0), offence=30.0), REVERT, None, NO_GAIN),
    "no effect, and another limit before it": (
        offender(wrote(1, 50.0, 8.0), offence=10.0),
        *(REVERT, 50.0, NO_GAIN),
    ),
    "a fifth less, and it goes on": (
        offender(wrote(1, None, 8.0), offence=8.0),
        *(TIGHTEN, 4.0, STEP_DOWN),
    ),
    "a step stops at the floor": (
        offender(wrote(1, None, 8.0), offence=8.0, least=6.0),
        *(TIGHTEN, 6.0, STEP_DOWN),
    ),
    "at the floor": (offender(wrote(1, None, 1.0), offence=8.0), None, None, AT_FLOOR),
    "a second step without gain": (
        offender(wrote(2, None, 8.0), wrote(1, 8.0, 4.0, 8.0), offence=8.0),
        *(REVERT, 8.0, STEP_WITHOUT_GAIN),
    ),
    "after it none follows": (
        offender(
            wrote(3, None, 8.0),
            wrote(2, 8.0, 4.0, 8.0),
            wrote(1, 4.0, 8.0, 8.0, REVERT),
            offence=8.0,
        ),
        *(None, None, AT_FLOOR),
    ),
    "all steps together without gain": (
        offender(wrote(2, None, 8.0), wrote(1, 8.0, 4.0, 8.0), offence=11.0),
        *(REVERT, None, NO_GAIN),
    ),
    "given back without gain an hour ago": (
        offender(wrote(2, None, 8.0), surrendered(1)),
        *(None, None, PAUSED),
    ),
    "given back without gain a day ago": (
        offender(wrote(26, None, 8.0), surrendered(24)),
        *(TIGHTEN, 8.0, FIRST),
    ),
    "its lease ended": (offender(wrote(2, None, 8.0), ended(1)), TIGHTEN, 8.0, FIRST),
    "given back because others are there": (
        offender(wrote(2, None, 8.0), wrote(1, 8.0, None, None, REVERT)),
        *(TIGHTEN, 8.0, FIRST),
    ),
}


def raised(*writes: LimitWrite, applied: float = 8.0, **others: float | None) -> OffenderLimit:
    """The raise of a quota to 16 that throttles its user all the time."""
    values = {"first": 16.0, "least": 16.0, "offence": 1.0} | others
    return OffenderLimit(applied=applied, lease=HOUR, writes=writes, is_raise=True, **values)


def up(hours_ago: float, before: float, after: float, offence: float = 1.0) -> LimitWrite:
    return wrote(hours_ago, before, after, offence, RAISE)


RAISES = {
    "no raise yet": (raised(), RAISE, 16.0, FIRST),
    "its offence has no size": (raised(offence=None), None, None, OFFENCE_UNKNOWN),
    "more than that applies": (raised(applied=20.0), None, None, AT_BOUND),
    "it is too early": (raised(up(0.5, 8.0, 16.0)), None, None, EFFECT_PENDING),
    "throttled as before": (raised(up(24, 8.0, 16.0)), REVERT, 8.0, NO_GAIN),
    "throttled more": (raised(up(24, 8.0, 16.0), offence=2.0), REVERT, 8.0, NO_GAIN),
    "it helped, and more is asked for": (
        raised(up(24, 8.0, 16.0), offence=0.8, applied=16.0, first=20.0),
        *(RAISE, 20.0, STEP_UP),
    ),
    "it helped, and is enough": (
        raised(up(24, 8.0, 16.0), offence=0.8, applied=16.0),
        *(None, None, AT_BOUND),
    ),
    "the second raise did not help": (
        raised(up(48, 8.0, 16.0), up(24, 16.0, 20.0, 0.5), offence=0.5, applied=20.0, first=25.0),
        *(REVERT, 16.0, STEP_WITHOUT_GAIN),
    ),
    "after it none follows": (
        raised(
            *(up(72, 8.0, 16.0), up(48, 16.0, 20.0, 0.5), wrote(24, 20.0, 16.0, 0.5, REVERT)),
            **{"offence": 0.5, "applied": 16.0, "first": 20.0},
        ),
        *(None, None, AT_BOUND),
    ),
    "reverted without gain an hour ago": (
        raised(up(25, 8.0, 16.0), wrote(1, 16.0, 8.0, 1.0, REVERT)),
        *(None, None, PAUSED),
    ),
    "its lease ended": (raised(up(25, 8.0, 16.0), ended(1, 16.0)), RAISE, 16.0, FIRST),
}
CASES |= {f"a raise: {name}": case for name, case in RAISES.items()}


@pytest.mark.parametrize(("state", "direction", "value", "reason"), CASES.values(), ids=CASES)
def test_the_next_change(
    state: OffenderLimit, direction: str | None, value: float | None, reason: str
) -> None:
    advice = limit.advise(state, BOUNDS, NOON)
    assert (advice.direction, advice.value, advice.reason) == (direction, value, reason)


def times(*ends: float, to_start: float = 1.0) -> list[LimitWrite]:
    """Limits that lasted an hour each and ended so many hours ago."""
    return [w for end in ends for w in (wrote(end + to_start, None, 8.0), ended(end))]


@pytest.mark.parametrize(
    ("writes", "hours"),
    [
        ([], 1),
        (times(0.5), 2),
        (times(3, 0.5), 4),
        (times(9, 6, 3, 0.5), 16),
        (times(15, 12, 9, 6, 3, 0.5), 24),
        (times(26), 1),
        (times(40, 0.5), 2),
        ([wrote(3, None, 8.0), surrendered(2)], 1),
        ([*times(8), wrote(3, None, 8.0)], 2),
    ],
    ids=[
        "the first",
        "one relapse",
        "two",
        "four",
        "as long as conf allows",
        "longer ago than a day",
        "only the last of two",
        "one without gain is no relapse",
        "that of a limit in place counts from its start",
    ],
)
def test_each_relapse_doubles_the_lease(writes: list[LimitWrite], hours: float) -> None:
    assert limit.advise(offender(*writes), BOUNDS, NOON).lease == hours * HOUR


WRITES = st.lists(
    st.builds(
        LimitWrite,
        st.floats(0, 100).map(lambda hours: NOON - hours * HOUR),
        st.none() | st.floats(1, 1e6),
        st.floats(1, 1e6),
        st.none() | st.floats(0, 1e6),
        st.sampled_from([TIGHTEN, RAISE, REVERT, None]),
    ),
    max_size=8,
).map(lambda writes: sorted(writes, key=lambda write: write.written_at))


@hyp.given(
    WRITES, st.floats(1, 1e6), st.floats(1, 1e6), st.none() | st.floats(1, 1e6), st.floats(0, 1e6)
)
def test_no_limit_is_below_the_floor_nor_above_what_applies(
    writes: list[LimitWrite], first: float, least: float, applied: float | None, offence: float
) -> None:
    state = OffenderLimit(first, least, applied, offence, HOUR, writes)
    advice = limit.advise(state, BOUNDS, NOON)
    assert HOUR <= advice.lease <= BOUNDS.max_lease
    if advice.direction != TIGHTEN:
        return
    assert advice.value is not None
    assert advice.value >= least
    if advice.reason == FIRST:
        assert applied is None or advice.value < applied
    else:
        assert advice.value < max(w.after or 0 for w in writes)
