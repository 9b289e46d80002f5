"""When readings are past a bound, or a row is there, for too long, and when that ends."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

_HOUR_MS = 3_600_000


class AlertState(StrEnum):
    """The state of an alert at an event.

    `still_open` comes once an hour while a reading is past its bound. `pending` is of rows alone.
    """

    PENDING = "pending"
    OPENED = "opened"
    STILL_OPEN = "still_open"
    CLOSED = "closed"


class CloseReason(StrEnum):
    """Why an alert was closed: a reading was past `clear` or a row gone, or no reading came for
    `stale_ms`; a row was gone before the alert was open; its rule was removed.
    """

    CLEARED = "cleared"
    STALE = "stale"
    BRIEF = "brief"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class ThresholdRule:
    """Readings past `bound` for longer than `for_ms` open an alert; one past `clear` closes it.

    `is_above`: past means greater, otherwise less. Between the two bounds an open alert stays
    open and none is opened (hysteresis). After `stale_ms` without a reading nothing is known: an
    open alert is closed at that time, and a breach that is not yet an alert is forgotten.
    """

    name: str
    bound: float
    clear: float
    for_ms: int
    stale_ms: int
    is_above: bool = True

    def __post_init__(self) -> None:
        """Refuse bounds in the wrong order, and times out of range."""
        right = self.clear <= self.bound if self.is_above else self.clear >= self.bound
        if not (right and math.isfinite(self.bound) and math.isfinite(self.clear)):
            side = "at most" if self.is_above else "at least"
            raise ValueError(f"clear must be {side} the bound {self.bound}, got {self.clear}")
        if self.for_ms < 0:
            raise ValueError(f"for_ms must be at least 0, got {self.for_ms}")
        if self.stale_ms < 1:
            raise ValueError(f"stale_ms must be at least 1, got {self.stale_ms}")

    def is_past(self, value: float) -> bool:
        """The reading is past the bound."""
        return value > self.bound if self.is_above else value < self.bound

    def is_clear(self, value: float) -> bool:
        """The reading closes an open alert; one at `clear` itself does not."""
        return value < self.clear if self.is_above else value > self.clear

    def worse(self, a: float, b: float) -> float:
        """The one of two readings that is further past the bound."""
        return max(a, b) if self.is_above else min(a, b)


@dataclass(frozen=True, slots=True)
class Breach:
    """A series past its bound: its first and last reading, the worst one, and their number.

    `last_event_ms` is the time of its last event; None while no alert is open yet.
    """

    first_ms: int
    last_ms: int
    peak: float
    points: int
    last_event_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to an alert at a time; `breach` is its breach up to then."""

    time_ms: int
    state: AlertState
    breach: Breach
    reason: CloseReason | None = None


@dataclass(frozen=True, slots=True)
class Sight:
    """The last event of an alert on a row, and when the row was first seen."""

    state: AlertState
    first_ms: int
    reason: CloseReason | None = None


def sighted(last: Sight | None, time_ms: int, for_ms: int, *, is_there: bool) -> Sight | None:
    """The next event of an alert on a row that is there now, or not; None: nothing changes.

    `last` is its last event if that has not closed it. A row that is there for `for_ms` opens it.
    """
    if last is None:
        state = AlertState.PENDING if for_ms else AlertState.OPENED
        return Sight(state, time_ms) if is_there else None
    is_pending = last.state is AlertState.PENDING
    if not is_there:
        reason = CloseReason.BRIEF if is_pending else CloseReason.CLEARED
        return Sight(AlertState.CLOSED, last.first_ms, reason)
    is_due = is_pending and time_ms - last.first_ms >= for_ms
    return Sight(AlertState.OPENED, last.first_ms) if is_due else None


def step(
    rule: ThresholdRule, breach: Breach | None, time_ms: int, value: float
) -> tuple[Breach | None, list[Event]]:
    """Add the next reading of a series. Returns the breach after it, and the events it causes.

    Readings come in order of time, no two at one time, and never NaN (which is no reading).
    """
    events: list[Event] = []
    if breach and time_ms - breach.last_ms > rule.stale_ms:
        events, breach = end(rule, breach), None
    if breach is None:
        if not rule.is_past(value):
            return None, events
        breach = Breach(time_ms, time_ms, value, 0)
    breach = replace(
        breach,
        last_ms=time_ms,
        peak=rule.worse(breach.peak, value),
        points=breach.points + 1,
    )
    if breach.last_event_ms is None:
        return _not_yet_open(rule, breach, value, events)
    if rule.is_clear(value):
        return None, [*events, Event(time_ms, AlertState.CLOSED, breach, CloseReason.CLEARED)]
    if time_ms // _HOUR_MS != breach.last_event_ms // _HOUR_MS:
        return _say(AlertState.STILL_OPEN, breach, events)
    return breach, events


def end(rule: ThresholdRule, breach: Breach | None) -> list[Event]:
    """The events when no reading follows: an open alert is closed once it is stale."""
    if breach is None or breach.last_event_ms is None:
        return []
    return [Event(breach.last_ms + rule.stale_ms, AlertState.CLOSED, breach, CloseReason.STALE)]


def _not_yet_open(
    rule: ThresholdRule, breach: Breach, value: float, events: list[Event]
) -> tuple[Breach | None, list[Event]]:
    if not rule.is_past(value):
        return None, events
    if breach.last_ms - breach.first_ms <= rule.for_ms:
        return breach, events
    return _say(AlertState.OPENED, breach, events)


def _say(state: AlertState, breach: Breach, events: list[Event]) -> tuple[Breach, list[Event]]:
    reported = replace(breach, last_event_ms=breach.last_ms)
    return reported, [*events, Event(breach.last_ms, state, reported)]
