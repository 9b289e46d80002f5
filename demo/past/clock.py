"""The times of the made past: how dense its lines are, and how busy its clients."""

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import accumulate

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
DAY_MS = 24 * HOUR_MS
DAYS = 7
_STEPS = ((DAYS, 30 * MINUTE_MS), (2, 10 * MINUTE_MS), (1, MINUTE_MS))
"""From so many days ago on, a line of each client every so often."""

_NIGHT, _PEAK_HOUR, _HALF_DAY_H, _WEEKEND = 0.12, 13.0, 4.5, 0.45
_FRIDAY = 4


def busy(ts_ms: int) -> float:
    """How busy clients are: 1 at noon of a weekday, UTC."""
    time = datetime.fromtimestamp(ts_ms / 1e3, UTC)
    hour = time.hour + time.minute / 60
    day = math.exp(-(((hour - _PEAK_HOUR) / _HALF_DAY_H) ** 2))
    return (_NIGHT + (1 - _NIGHT) * day) * (_WEEKEND if time.weekday() > _FRIDAY else 1.0)


@dataclass(frozen=True, slots=True)
class Tick:
    """A moment at which each client has a line, for what it did in the `step_ms` before."""

    number: int
    ts_ms: int
    step_ms: int


@dataclass(frozen=True)
class Clock:
    """A week that ends at `end_ms`."""

    end_ms: int

    @property
    def start_ms(self) -> int:
        """A week before its end, at a full half hour."""
        return (self.end_ms - DAYS * DAY_MS) // _STEPS[0][1] * _STEPS[0][1]

    def ago(self, hours: float) -> int:
        """The time so many hours before the end, at a full minute."""
        return (self.end_ms - round(hours * HOUR_MS)) // MINUTE_MS * MINUTE_MS

    def ticks(self) -> Iterator[Tick]:
        """All moments in order; the last day is the densest."""
        ts_ms, number = self.start_ms, 0
        while ts_ms < self.end_ms:
            left_ms = self.end_ms - ts_ms
            step_ms = [step for days, step in _STEPS if left_ms <= days * DAY_MS + step][-1]
            yield Tick(number, ts_ms, step_ms)
            ts_ms, number = ts_ms + step_ms, number + 1

    def done(self, ts_ms: int) -> float:
        """The share of the week's work that is done at a time: 0 to 1."""
        times, sums = self._work
        place = min(max(bisect_right(times, ts_ms) - 1, 0), len(times) - 2)
        part = (ts_ms - times[place]) / (times[place + 1] - times[place])
        work = sums[place] + (sums[place + 1] - sums[place]) * min(max(part, 0.0), 1.0)
        return work / sums[-1]

    @cached_property
    def _work(self) -> tuple[list[int], list[float]]:
        times = list(range(self.start_ms, self.end_ms + 10 * MINUTE_MS, 10 * MINUTE_MS))
        return times, [0.0, *accumulate(busy(ts_ms) for ts_ms in times[:-1])]
