"""Whether a cluster is worse after a config change than before it. Pure.

It judges by everybody else: clients whose config changed do not count, because the one that is
limited could otherwise undo its limit by errors of its own. For the same reason the errors of few
principals say nothing. A figure counts only if it is above the cluster's own usual spread.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from quotaflow.udfs.counted import counted, noun

LEAST_REQUESTS = 20
"""Requests of a principal in each window from which on its share of errors says something."""
_RISE_OF_ERRORS, _FACTOR_OF_ERRORS = 0.05, 2.0
_LEAST_PRINCIPALS, _LEAST_MINUTES, _LEAST_REPLICAS = 5, 3, 3
_RISE_OF_SLOW, _RISE_OF_OUT_OF_SYNC = 0.1, 0.005
_LEAST_HISTORY = 48
"""Earlier windows from which on the usual spread is known: two days of one each hour."""
_MADS = 6 * 1.4826
"""1.4826 times the median of distances from the median is a standard deviation, for normal noise.
Six of them are rarer than once in years of windows."""


@dataclass(frozen=True, slots=True)
class Window:
    """What was seen of a cluster in a time range.

    `slow_minutes` of its `minutes` had a broker that was slow for its clients. `errors`: principal
    -> requests of it, and those with an error that a broker caused. `well`: so many principals more
    have enough requests in both windows that are compared, and no such error in this one.
    `out_of_sync` of its `replicas` were not in sync at its end; None where no snapshot shows them.
    """

    minutes: int = 0
    slow_minutes: int = 0
    errors: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    well: int = 0
    replicas: int | None = None
    out_of_sync: int = 0


Pair = tuple[Window, Window]
"""A window, and a later one that is compared with it."""


@dataclass(frozen=True, slots=True)
class _Sign:
    """A figure of a pair, from 0 to 1, that can show that a cluster is worse.

    `share`: the figure; None where nothing was measured. `is_more`: whether it rose by enough to
    matter. A cluster is worse above the usual spread, and never at or below `least`. Where too
    little history is known, it is worse above `fixed`.
    """

    share: Callable[[Window, Window], float | None]
    is_more: Callable[[Window, Window], bool]
    least: float
    fixed: float
    text: Callable[[Window, Window], str]

    def is_suspect(self, pair: Pair) -> bool:
        return (self.share(*pair) or 0.0) > self.least and self.is_more(*pair)

    def is_unusual(self, pair: Pair, earlier: Iterable[Pair]) -> bool:
        shares = (self.share(*each) for each in earlier)
        usual = [share for share in shares if share is not None]
        return (self.share(*pair) or 0.0) > self._bound(usual)

    def _bound(self, usual: Sequence[float]) -> float:
        if len(usual) < _LEAST_HISTORY:
            return self.fixed
        middle = median(usual)
        return max(self.least, middle + _MADS * median(abs(each - middle) for each in usual))


def worse(before: Window, after: Window, earlier: Iterable[Pair] = ()) -> str | None:
    """Why the cluster is worse in `after` than in `before`; None if it is not.

    `earlier` has pairs of the same lengths from before the change: the usual spread. It is read
    only if a figure rose by enough to matter.
    """
    pair = before, after
    suspects = [sign for sign in _SIGNS if sign.is_suspect(pair)]
    usual = tuple(earlier) if suspects else ()
    for sign in suspects:
        if sign.is_unusual(pair, usual):
            return sign.text(*pair)
    return None


def _slow_share(_: Window, after: Window) -> float | None:
    return after.slow_minutes / after.minutes if after.minutes else None


def _is_slower(before: Window, after: Window) -> bool:
    was = _slow_share(after, before) or 0.0
    now = _slow_share(before, after) or 0.0
    return after.slow_minutes >= _LEAST_MINUTES and now > was + _RISE_OF_SLOW


def _slow_text(before: Window, after: Window) -> str:
    return (
        f"brokers are slow in {after.slow_minutes} of {counted(after.minutes, 'minute')}, "
        f"and were in {before.slow_minutes} of {before.minutes}"
    )


def _out_of_sync_share(_: Window, after: Window) -> float | None:
    return after.out_of_sync / after.replicas if after.replicas else None


def _is_less_in_sync(before: Window, after: Window) -> bool:
    was, now = _out_of_sync_share(after, before), _out_of_sync_share(before, after)
    if was is None or now is None:
        return False
    more = after.out_of_sync - before.out_of_sync
    return more >= _LEAST_REPLICAS and now > was + _RISE_OF_OUT_OF_SYNC


def _out_of_sync_text(before: Window, after: Window) -> str:
    replicas = counted(after.replicas or 0, "replica")
    are, were = noun(after.out_of_sync, "is", "are"), noun(before.out_of_sync, "was", "were")
    return (
        f"{after.out_of_sync:,} of {replicas} {are} out of sync, and {before.out_of_sync:,} {were}"
    )


def _shares(before: Window, after: Window) -> dict[str, tuple[float, float]]:
    """Of each named principal with enough requests, its shares of errors before and after."""
    return {
        principal: (_share(before.errors[principal]), _share(counts))
        for principal, counts in after.errors.items()
        if counts[0] >= LEAST_REQUESTS
        and before.errors.get(principal, (0.0, 0.0))[0] >= LEAST_REQUESTS
    }


def _risen(shares: Mapping[str, tuple[float, float]]) -> list[str]:
    return [
        principal
        for principal, (was, now) in shares.items()
        if now > max(was + _RISE_OF_ERRORS, was * _FACTOR_OF_ERRORS)
    ]


def _risen_share(before: Window, after: Window) -> float | None:
    shares = _shares(before, after)
    measured = len(shares) + after.well
    return len(_risen(shares)) / measured if measured else None


def _is_more_failing(before: Window, after: Window) -> bool:
    return len(_risen(_shares(before, after))) >= _LEAST_PRINCIPALS


def _errors_text(before: Window, after: Window) -> str:
    shares = _shares(before, after)
    risen = sorted(_risen(shares))
    was, now = shares[risen[0]]
    return (
        f"{len(risen)} of {counted(len(shares) + after.well, 'other principal')} "
        f"{noun(len(risen), 'has', 'have')} more errors "
        f"that brokers cause, such as {risen[0]}: {now:.0%} of its requests, and {was:.0%} before"
    )


def _share(counts: tuple[float, float]) -> float:
    requests, errors = counts
    return errors / requests


_SIGNS = (
    _Sign(_slow_share, _is_slower, 0.2, 0.5, _slow_text),
    _Sign(_out_of_sync_share, _is_less_in_sync, 0.005, 0.01, _out_of_sync_text),
    _Sign(_risen_share, _is_more_failing, 0.1, 0.25, _errors_text),
)
