"""When a limit is set, lowered, kept and given back, and how long its lease is."""

import math
from datetime import timedelta

import hypothesis as hyp
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

from ...cases import cases, grouped
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


CASES: dict[tuple[str | None, float | None, str], dict[str, OffenderLimit]] = {
    (TIGHTEN, 8.0, FIRST): {
        "no limit yet": offender(),
        "somebody else set more": offender(applied=10.0),
        "given back without gain a day ago": offender(wrote(26, None, 8.0), surrendered(24)),
        "its lease ended": offender(wrote(2, None, 8.0), ended(1)),
        "given back because others are there": offender(
            wrote(2, None, 8.0), wrote(1, 8.0, None, None, REVERT)
        ),
    },
    (TIGHTEN, 20.0, FIRST): {"others need more than the first value": offender(least=20.0)},
    (None, None, AT_FLOOR): {
        "somebody else set less": offender(applied=5.0),
        "at the floor": offender(wrote(1, None, 1.0), offence=8.0),
        "after it none follows": offender(
            wrote(3, None, 8.0),
            wrote(2, 8.0, 4.0, 8.0),
            wrote(1, 4.0, 8.0, 8.0, REVERT),
            offence=8.0,
        ),
    },
    (TIGHTEN, 25.0, FIRST): {"somebody else set far more": offender(applied=50.0)},
    (None, None, OFFENCE_UNKNOWN): {
        "an offence of no size": offender(offence=None),
        "an offence that is no number": offender(offence=math.nan),
    },
    (None, None, EFFECT_PENDING): {
        "its effect cannot show yet": offender(wrote(0.5, None, 8.0), offence=10.0)
    },
    (REVERT, None, NO_GAIN): {
        "no effect": offender(wrote(1, None, 8.0), offence=10.0),
        "a twentieth less": offender(wrote(1, None, 8.0), offence=9.5),
        "worse": offender(wrote(1, None, 8.0), offence=30.0),
        "all steps together without gain": offender(
            wrote(2, None, 8.0), wrote(1, 8.0, 4.0, 8.0), offence=11.0
        ),
    },
    (REVERT, 50.0, NO_GAIN): {
        "no effect, and another limit before it": offender(wrote(1, 50.0, 8.0), offence=10.0)
    },
    (TIGHTEN, 4.0, STEP_DOWN): {
        "a fifth less, and it goes on": offender(wrote(1, None, 8.0), offence=8.0)
    },
    (TIGHTEN, 6.0, STEP_DOWN): {
        "a step stops at the floor": offender(wrote(1, None, 8.0), offence=8.0, least=6.0)
    },
    (REVERT, 8.0, STEP_WITHOUT_GAIN): {
        "a second step without gain": offender(
            wrote(2, None, 8.0), wrote(1, 8.0, 4.0, 8.0), offence=8.0
        )
    },
    (None, None, PAUSED): {
        "given back without gain an hour ago": offender(wrote(2, None, 8.0), surrendered(1))
    },
}


def raised(*writes: LimitWrite, applied: float = 8.0, **others: float | None) -> OffenderLimit:
    """The raise of a quota to 16 that throttles its user all the time."""
    values = {"first": 16.0, "least": 16.0, "offence": 1.0} | others
    return OffenderLimit(applied=applied, lease=HOUR, writes=writes, is_raise=True, **values)


def up(hours_ago: float, before: float, after: float, offence: float = 1.0) -> LimitWrite:
    return wrote(hours_ago, before, after, offence, RAISE)


RAISES: dict[tuple[str | None, float | None, str], dict[str, OffenderLimit]] = {
    (RAISE, 16.0, FIRST): {
        "no raise yet": raised(),
        "its lease ended": raised(up(25, 8.0, 16.0), ended(1, 16.0)),
    },
    (None, None, OFFENCE_UNKNOWN): {"its offence has no size": raised(offence=None)},
    (None, None, AT_BOUND): {
        "more than that applies": raised(applied=20.0),
        "it helped, and is enough": raised(up(24, 8.0, 16.0), offence=0.8, applied=16.0),
        "after it none follows": raised(
            *(up(72, 8.0, 16.0), up(48, 16.0, 20.0, 0.5), wrote(24, 20.0, 16.0, 0.5, REVERT)),
            **{"offence": 0.5, "applied": 16.0, "first": 20.0},
        ),
    },
    (None, None, EFFECT_PENDING): {"it is too early": raised(up(0.5, 8.0, 16.0))},
    (REVERT, 8.0, NO_GAIN): {
        "throttled as before": raised(up(24, 8.0, 16.0)),
        "throttled more": raised(up(24, 8.0, 16.0), offence=2.0),
    },
    (RAISE, 20.0, STEP_UP): {
        "it helped, and more is asked for": raised(
            up(24, 8.0, 16.0), offence=0.8, applied=16.0, first=20.0
        )
    },
    (REVERT, 16.0, STEP_WITHOUT_GAIN): {
        "the second raise did not help": raised(
            up(48, 8.0, 16.0), up(24, 16.0, 20.0, 0.5), offence=0.5, applied=20.0, first=25.0
        )
    },
    (None, None, PAUSED): {
        "reverted without gain an hour ago": raised(
            up(25, 8.0, 16.0), wrote(1, 16.0, 8.0, 1.0, REVERT)
        )
    },
}


@cases(
    ("state", "expected"),
    *grouped(CASES),
    *((f"a raise: {case}", *others) for case, *others in grouped(RAISES)),
)
def test_the_next_change(
    state: OffenderLimit, expected: tuple[str | None, float | None, str]
) -> None:
    advice = limit.advise(state, BOUNDS, NOON)
    assert (advice.direction, advice.value, advice.reason) == expected


def times(*ends: float, to_start: float = 1.0) -> list[LimitWrite]:
    """Limits that lasted an hour each and ended so many hours ago."""
    return [w for end in ends for w in (wrote(end + to_start, None, 8.0), ended(end))]


@cases(
    ("writes", "hours"),
    ("the first", [], 1),
    ("one relapse", times(0.5), 2),
    ("two", times(3, 0.5), 4),
    ("four", times(9, 6, 3, 0.5), 16),
    ("as long as conf allows", times(15, 12, 9, 6, 3, 0.5), 24),
    ("longer ago than a day", times(26), 1),
    ("only the last of two", times(40, 0.5), 2),
    ("one without gain is no relapse", [wrote(3, None, 8.0), surrendered(2)], 1),
    ("that of a limit in place counts from its start", [*times(8), wrote(3, None, 8.0)], 2),
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
