"""What a quota on new producer ids would have done: arrivals replayed against a token bucket.

Closed loop: a throttled client also sends its later requests later, so a replay differs from the
sums of an open loop (`producer_id_rates`).
"""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from quotaflow.udfs.rules.token_bucket import TokenBucket


@dataclass(frozen=True, slots=True)
class ReplayQuota:
    """A `producer_ids_rate` (KIP-936): ids per second, saved up for all windows."""

    ids_per_s: float
    num_windows: int = 11
    window_ms: int = 1_000

    def token_bucket(self) -> TokenBucket:
        """A bucket of this quota, full."""
        return TokenBucket(self.ids_per_s, self.num_windows, self.window_ms)


@dataclass(slots=True)
class ReplayOutcome:
    """What a quota did to one source of new ids; times in ms.

    `allocated_ids` counts each id once, when a broker gives it. KIP-936 also counts ids of PRODUCE
    requests, which stock brokers do not log, and an id again after a pause. `late_ms` is how much
    later than requested its last id came. `is_innocent`: it was throttled, and alone under the
    quota it would not have been.
    """

    allocated_ids: int = 0
    throttled_ids: int = 0
    throttle_time_ms: int = 0
    longest_throttle_ms: int = 0
    late_ms: int = 0
    is_innocent: bool = False


def replay(arrivals: Mapping[str, Iterable[int]], quota: ReplayQuota) -> dict[str, ReplayOutcome]:
    """What `quota` does to sources that share it; `arrivals`: when each requests ids, in ms.

    A source gets one id at a time. An id that leaves the bucket in debt is answered when the debt
    is paid (-tokens / quota, as Kafka throttles), and the next request waits for that answer.
    """
    outcomes = _shared(arrivals, quota)
    for source, outcome in outcomes.items():
        if outcome.throttled_ids and len(outcomes) > 1:
            alone = _shared({source: arrivals[source]}, quota)[source]
            outcome.is_innocent = not alone.throttled_ids
    return outcomes


@dataclass(order=True, slots=True)
class _QueuedRequest:
    """The next request of a source, by its time."""

    time_ms: int
    source: str
    requested_ms: list[int] = field(compare=False)
    at: int = field(default=0, compare=False)


def _shared(arrivals: Mapping[str, Iterable[int]], quota: ReplayQuota) -> dict[str, ReplayOutcome]:
    bucket, outcomes = quota.token_bucket(), {source: ReplayOutcome() for source in arrivals}
    lists = {source: sorted(times) for source, times in arrivals.items()}
    queue = [_QueuedRequest(times[0], source, times) for source, times in lists.items() if times]
    heapq.heapify(queue)
    while queue:
        request = heapq.heappop(queue)
        bucket.record(1, request.time_ms)
        owed_s = -bucket.measure(request.time_ms) / quota.ids_per_s
        throttle_ms = max(round(owed_s * 1_000), 0)
        _count(outcomes[request.source], request, throttle_ms)
        request.at += 1
        if request.at < len(request.requested_ms):
            request.time_ms = max(request.requested_ms[request.at], request.time_ms + throttle_ms)
            heapq.heappush(queue, request)
    return outcomes


def _count(outcome: ReplayOutcome, request: _QueuedRequest, throttle_ms: int) -> None:
    outcome.allocated_ids += 1
    outcome.throttled_ids += throttle_ms > 0
    outcome.throttle_time_ms += throttle_ms
    outcome.longest_throttle_ms = max(outcome.longest_throttle_ms, throttle_ms)
    outcome.late_ms = request.time_ms + throttle_ms - request.requested_ms[request.at]
