"""Kafka's token bucket: unused quota is saved up, and the balance can go negative."""

import math


class TokenBucket:
    """Tokens left of `quota` per second, saved up for `num_windows` windows of `window_ms`.

    Kafka's `metrics.stats.TokenBucket` (KIP-599). Below zero the quota is violated, and
    `-tokens / quota` seconds bring it back to zero. Like Kafka's it starts empty at the epoch,
    so it is full at any real time. If time goes back, so does the refill.
    """

    def __init__(self, quota: float, num_windows: int = 11, window_ms: int = 1_000) -> None:
        """Save at most `burst` tokens: quota x num_windows x window in seconds."""
        if not 0 < quota < math.inf:
            raise ValueError(f"quota must be above 0 and finite, got {quota}")
        if num_windows < 1:
            raise ValueError(f"num_windows must be at least 1, got {num_windows}")
        if window_ms < 1:
            raise ValueError(f"window_ms must be at least 1, got {window_ms}")
        self.quota = quota
        self.burst = num_windows * (window_ms / 1_000) * quota
        self._tokens = 0.0
        self._last_ms = 0

    def record(self, value: float, time_ms: int) -> None:
        """Spend `value` tokens at `time_ms`, whether or not there are that many."""
        self._tokens = min(self.burst, self.measure(time_ms) - value)

    def measure(self, time_ms: int) -> float:
        """Tokens left at `time_ms`, negative when in debt."""
        refill = self.quota * ((time_ms - self._last_ms) / 1_000)
        self._tokens = min(self.burst, self._tokens + refill)
        self._last_ms = time_ms
        return self._tokens
