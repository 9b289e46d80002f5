"""Rates as a broker measures them for its quotas: a window begins with a record."""

from dataclasses import dataclass


@dataclass(slots=True)
class _Sample:
    """What was recorded from `start_ms` on, until a window had passed."""

    start_ms: int
    last_ms: int
    total: float = 0.0


class SimpleRate:
    """Units per second over `num_windows` windows of `window_ms`: replication quotas.

    Kafka's `metrics.stats.SimpleRate`. A window begins with the first record after the one before
    it has ended, not on a clock's grid; the first one counts as whole from its start. Time may fall
    back, as in Kafka: the newest window then goes on filling, and no window ends until the clock
    has caught up with its start.
    """

    def __init__(self, num_windows: int = 11, window_ms: int = 1_000) -> None:
        """Begin with nothing recorded; both numbers are at least 1."""
        self._num_windows = num_windows
        self._window_ms = window_ms
        self._samples: list[_Sample] = []
        self._newest = 0

    def record(self, value: float, time_ms: int) -> None:
        """Add `value` to the window of `time_ms`."""
        if not self._samples:
            self._samples.append(_Sample(time_ms, time_ms))
        if time_ms - self._samples[self._newest].start_ms >= self._window_ms:
            self._begin_sample(time_ms)
        sample = self._samples[self._newest]
        sample.total += value
        sample.last_ms = time_ms

    def measure(self, time_ms: int) -> float:
        """Units per second at `time_ms`; windows that have grown too old are emptied."""
        self._purge(time_ms)
        total = 0.0
        for sample in self._samples:  # not sum(): from Python 3.12 on it rounds unlike Java
            total += sample.total
        return total / (self._period_ms(time_ms) / 1_000)

    def _period_ms(self, time_ms: int) -> int:
        """The time that a rate is over."""
        return max(self._elapsed_ms(time_ms), self._window_ms)

    def _begin_sample(self, time_ms: int) -> None:
        """One slot more than windows: the oldest may still overlap the span that is measured."""
        self._newest = (self._newest + 1) % (self._num_windows + 1)
        sample = _Sample(time_ms, time_ms)
        self._samples[self._newest : self._newest + 1] = [sample]

    def _purge(self, time_ms: int) -> None:
        """Restart at `time_ms` every sample with no record in the last `num_windows` windows."""
        if not self._samples:
            self._samples.append(_Sample(time_ms, time_ms))
        for slot, sample in enumerate(self._samples):
            if time_ms - sample.last_ms >= self._num_windows * self._window_ms:
                self._samples[slot] = _Sample(time_ms, time_ms)

    def _elapsed_ms(self, time_ms: int) -> int:
        """Since the oldest sample began; negative where the clock fell back behind it."""
        return time_ms - min(sample.start_ms for sample in self._samples)


class Rate(SimpleRate):
    """Units per second as `SimpleRate`, but over all windows but one at least: client quotas.

    Kafka's `metrics.stats.Rate`, which ClientQuotaManager measures by: a bucket that was idle may
    use `num_windows - 1` windows of its quota at once.
    """

    def throttle_ms(self, quota: float, time_ms: int) -> int:
        """How long a client waits after what it just recorded at `time_ms`; 0: not at all.

        Kafka's QuotaUtils.throttleTime, which ClientQuotaManager sets no bound on for bytes.
        """
        rate = self.measure(time_ms)
        if rate <= quota:
            return 0
        return int((rate - quota) / quota * self._period_ms(time_ms) + 0.5)

    def _period_ms(self, time_ms: int) -> int:
        elapsed_ms = self._elapsed_ms(time_ms)
        # As Java divides, towards zero: a clock that fell back makes no window.
        windows = int(elapsed_ms / self._window_ms)
        missing = max(self._num_windows - 1 - windows, 0)
        return max(elapsed_ms + missing * self._window_ms, 1)
