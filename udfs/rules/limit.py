"""Whether a value is set, stepped, kept or restored by its effect, and how long it lasts.

One rule for each config whose effect shows in an offence:

- connection_creation_rate of an address (KIP-612), and producer_ids_rate of a user or of the
  default of all users (KIP-936): new producer ids/s.
- producer.id.expiration.ms of a broker: the heap that its producer ids will take.
- a lower rate of a replication throttle (KIP-73): how many times the usual p99 clients wait.
- a raised quota of a user: the part of its time in which it is throttled, per byte that it moves.
  So a raise helps a user who moves more, also one who takes all that a quota allows.

All except the raise limit a client:

1. The first value is the one that results ask for, such as what the quota of producer ids allows.
   No value is less than the one before it divided by `max_step_factor`.
2. The next decision comes a settle time after the last write, when its effect shows.
3. The gain of a write is 1 - offence after / offence before. If all writes together have less than
   `min_gain`, the limit is reverted, and none follows for `pause`. If the last step alone has
   less, that step is reverted, and no other follows.
4. While the offence goes on although the limit helps, a step divides the value by
   `max_step_factor`, down to the floor. The floor is what others at the same entity need.
5. Without an offence nothing changes until the lease ends. Then the limit goes, and an offence that
   comes back within `forgiven_after` is a relapse: each one doubles the lease, up to `max_lease`.

For a raise, a step goes up to the value that results ask for.

Pure: time is an argument. Values are in the unit of the config, offences all in one unit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

TIGHTEN, RAISE, REVERT = "tighten", "raise", "revert"
"""Directions of a value. REVERT: towards the value before ours."""

FIRST = "first"
"""The first value of a limit."""
STEP_DOWN, STEP_UP = "step_down", "step_up"
"""A further step of a limit, and of a raise."""
STEP_WITHOUT_GAIN = "step_without_gain"
"""The last step did not lower the offence: it is reverted."""
NO_GAIN = "no_gain"
"""The limit did not lower the offence: it is reverted."""

EFFECT_PENDING = "effect_pending"
"""The last write is less than a settle time ago."""
OFFENCE_UNKNOWN = "offence_unknown"
"""The offence has no number, so no gain could be computed."""
PAUSED = "paused_without_gain"
"""A limit without gain was reverted less than `pause` ago."""
AT_FLOOR = "at_floor"
"""A lower value would be below the floor, or the last lower one had no gain."""
AT_BOUND = "at_bound"
"""A raise to more is not asked for, or the last one had no gain."""

_MAX_RELAPSES = 16  # past each bound of conf


@dataclass(frozen=True, slots=True)
class LimitBounds:
    """How much a limit must help, and how long it lasts (conf).

    `settle`: from a write to the first time at which the measured offence is all after it.
    """

    min_gain: float = 0.1
    max_step_factor: float = 2.0
    pause: timedelta = timedelta(days=1)
    settle: timedelta = timedelta(minutes=50)
    max_lease: timedelta = timedelta(days=1)
    forgiven_after: timedelta = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class LimitWrite:
    """One write to the config: the values before and after, null where it is not set.

    `offence`: as measured when it was planned. `direction`: TIGHTEN, RAISE, REVERT, or null
    where the lease ended or a person took over.
    """

    written_at: datetime
    before: float | None
    after: float | None
    offence: float | None = None
    direction: str | None = TIGHTEN


@dataclass(frozen=True, slots=True)
class OffenderLimit:
    """The limit of one offender, or the raise of one user.

    `first`: the first value, and of a raise each value; `least`: the floor. `applied`: the value
    that applies now, by anybody; null: none. `offence`: how much it offends since the last write.
    `lease`: that of a limit without relapses. `writes`: in time order. `is_ours`: the value that is
    set is ours.
    """

    first: float
    least: float
    applied: float | None
    offence: float | None
    lease: timedelta
    writes: Sequence[LimitWrite] = ()
    is_ours: bool = True
    is_raise: bool = False


@dataclass(frozen=True, slots=True)
class LimitAdvice:
    """What to do: TIGHTEN, RAISE or REVERT to `value` (null: remove it), or None: nothing.

    `lease`: how long the value stays if no plan renews it.
    """

    direction: str | None
    value: float | None
    reason: str
    lease: timedelta


@dataclass(slots=True)
class _Episode:
    """From the first write of a limit to its end."""

    started_at: datetime
    steps: list[LimitWrite]
    returned: list[LimitWrite] = field(default_factory=list)
    ended_at: datetime | None = None
    is_surrender: bool = False


def advise(limit: OffenderLimit, bounds: LimitBounds, now: datetime) -> LimitAdvice:
    """The next change of a limit while results ask for it."""
    past = _episodes(limit.writes)
    is_open = bool(past) and past[-1].ended_at is None
    current = past.pop() if is_open and limit.is_ours else None
    started_at = current.started_at if current else now
    lease = min(
        limit.lease * 2 ** _relapses(past, started_at, bounds), max(limit.lease, bounds.max_lease)
    )
    direction, value, reason = (
        _first(limit, past, bounds, now)
        if current is None
        else _next(limit, current, bounds, now - limit.writes[-1].written_at)
    )
    return LimitAdvice(direction, value, reason, lease)


def gain(before: float | None, after: float) -> float:
    """How much less the offence is: 0.2 is a fifth; negative: it is more."""
    return 1 - after / before if before else 0.0


Choice = tuple[str | None, float | None, str]
"""Direction, value and reason."""


def _first(
    limit: OffenderLimit, past: Sequence[_Episode], bounds: LimitBounds, now: datetime
) -> Choice:
    if _measured(limit.offence) is None:
        return None, None, OFFENCE_UNKNOWN
    surrendered = (e.ended_at for e in past if e.is_surrender)
    if any(at is not None and now - at < bounds.pause for at in surrendered):
        return None, None, PAUSED
    if limit.is_raise:
        return _raised(limit, limit.applied, FIRST)
    value = max(limit.first, limit.least)
    if limit.applied is None:
        return TIGHTEN, value, FIRST
    if limit.applied <= value:
        return None, None, AT_FLOOR
    return TIGHTEN, max(value, limit.applied / bounds.max_step_factor), FIRST


def _next(
    limit: OffenderLimit, current: _Episode, bounds: LimitBounds, waited: timedelta
) -> Choice:
    if waited < bounds.settle:
        return None, None, EFFECT_PENDING
    offence = _measured(limit.offence)
    if offence is None:
        return None, None, OFFENCE_UNKNOWN
    return _reverted(current, offence, bounds) or _further(limit, current, bounds)


def _reverted(current: _Episode, offence: float, bounds: LimitBounds) -> Choice | None:
    """What had too little gain, and goes; None if nothing does."""
    steps = current.steps
    if gain(steps[0].offence, offence) < bounds.min_gain:
        return REVERT, steps[0].before, NO_GAIN
    last = steps[-1]
    # A step that was given back was judged then.
    if len(steps) > 1 and not current.returned and gain(last.offence, offence) < bounds.min_gain:
        return REVERT, last.before, STEP_WITHOUT_GAIN
    return None


def _further(limit: OffenderLimit, current: _Episode, bounds: LimitBounds) -> Choice:
    last = current.steps[-1].after
    if limit.is_raise:
        return _raised(limit, None if current.returned else last, STEP_UP)
    assert last is not None
    value = max(last / bounds.max_step_factor, limit.least)
    if current.returned or value >= last:
        return None, None, AT_FLOOR
    return TIGHTEN, value, STEP_DOWN


def _raised(limit: OffenderLimit, before: float | None, reason: str) -> Choice:
    if before is None or limit.first <= before:
        return None, None, AT_BOUND
    return RAISE, limit.first, reason


def _relapses(past: Sequence[_Episode], started_at: datetime, bounds: LimitBounds) -> int:
    """How many limits before the one that starts then ended by their leases, each soon before."""
    relapses, until = 0, started_at
    for episode in reversed(past):
        if episode.ended_at is None or episode.is_surrender:
            break
        if until - episode.ended_at > bounds.forgiven_after:
            break
        relapses, until = relapses + 1, episode.started_at
    return min(relapses, _MAX_RELAPSES)


def _episodes(writes: Sequence[LimitWrite]) -> list[_Episode]:
    made: list[_Episode] = []
    for write in writes:
        current = made[-1] if made and made[-1].ended_at is None else None
        if write.direction in {TIGHTEN, RAISE}:
            if current is None:
                made.append(_Episode(write.written_at, [write]))
            else:
                current.steps.append(write)
        elif current is not None:
            _give_back(current, write)
    return made


def _give_back(episode: _Episode, write: LimitWrite) -> None:
    is_step = write.direction == REVERT and write.after != episode.steps[0].before
    if is_step and len(episode.steps) > 1:
        episode.steps.pop()
        episode.returned.append(write)
        return
    episode.ended_at = write.written_at
    episode.is_surrender = write.direction == REVERT and write.offence is not None


def _measured(offence: float | None) -> float | None:
    return offence if offence is not None and math.isfinite(offence) else None
