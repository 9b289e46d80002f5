"""What a byte quota would have done: requests of one bucket, replayed under it.

Closed loop: a client sends its next request as long after an answer as it did, so a longer throttle
makes all that follows later, and a shorter one earlier.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from quotaflow.udfs.rules.quota_rate import Rate

_MOST_TRIES = 100


@dataclass(frozen=True, slots=True)
class ByteQuota:
    """A quota in bytes per second, and the brokers' windows (KIP-13).

    `is_fetch`: of a consumer. A broker answers what is over the quota without records, charges
    nothing, and lets no answer be larger than all windows but one (ClientQuotaManager's
    unrecordQuotaSensor and maxValueInQuotaWindow). A producer is charged for what was written.
    """

    bytes_per_s: float
    is_fetch: bool
    num_windows: int = 11
    window_ms: int = 1_000

    def largest_answer(self) -> float:
        """The most bytes of one answer to a FETCH."""
        return self.bytes_per_s * max(self.num_windows - 1, 1) * self.window_ms / 1_000


@dataclass(frozen=True, slots=True)
class Charge:
    """A request that a broker charged; times in ms. `weight`: requests that it counts as.

    `source` is whom the outcome counts for, and `connection` what a throttle stops.
    """

    time_ms: int
    source: str
    connection: str
    bytes: float
    throttle_ms: float = 0
    weight: float = 1


@dataclass(slots=True)
class ByteOutcome:
    """What brokers did to the requests of a source, and what the quota would have done; in ms."""

    requests: float = 0
    throttled_before: float = 0
    throttled_after: float = 0
    throttle_ms_before: float = 0
    throttle_ms_after: float = 0
    longest_ms_after: float = 0


@dataclass(order=True, slots=True)
class _Connection:
    """A connection's charges, and when its next one comes."""

    time_ms: float
    name: str
    charges: list[Charge] = field(compare=False)
    waits_ms: list[float] = field(compare=False)
    at: int = field(default=0, compare=False)


def replay(charges: Iterable[Charge], quota: ByteQuota) -> dict[str, ByteOutcome]:
    """What `quota` does to requests that share it at one broker, by source."""
    outcomes = defaultdict[str, ByteOutcome](ByteOutcome)
    queue = []
    for name, own in _by_connection(charges).items():
        for charge in own:
            _count_before(outcomes[charge.source], charge)
        if connection := _connection(name, own, quota):
            queue.append(connection)
    heapq.heapify(queue)
    rate = Rate(quota.num_windows, quota.window_ms)
    while queue:
        connection = heapq.heappop(queue)
        charge = connection.charges[connection.at]
        throttle_ms = _throttle_ms(rate, quota, charge, connection.time_ms, outcomes[charge.source])
        connection.at += 1
        if connection.at < len(connection.charges):
            connection.time_ms += throttle_ms + connection.waits_ms[connection.at]
            heapq.heappush(queue, connection)
    return dict(outcomes)


def _by_connection(charges: Iterable[Charge]) -> dict[str, list[Charge]]:
    connections = defaultdict[str, list[Charge]](list)
    for charge in sorted(charges, key=lambda each: each.time_ms):
        connections[charge.connection].append(charge)
    return connections


def _connection(name: str, charges: list[Charge], quota: ByteQuota) -> _Connection | None:
    """The charges that are replayed, each with how long after the answer before it came."""
    replayed, waits_ms = [], []
    wait_ms, free_ms = 0.0, float(charges[0].time_ms)
    for charge in charges:
        wait_ms += max(charge.time_ms - free_ms, 0)
        free_ms = charge.time_ms + charge.throttle_ms
        # It was answered without records. The client asked again, which is a charge of its own.
        if quota.is_fetch and charge.throttle_ms > 0 and charge.bytes == 0:
            continue
        replayed.append(charge)
        waits_ms.append(wait_ms)
        wait_ms = 0.0
    if not replayed:
        return None
    return _Connection(charges[0].time_ms + waits_ms[0], name, replayed, waits_ms)


def _throttle_ms(
    rate: Rate, quota: ByteQuota, charge: Charge, time_ms: float, outcome: ByteOutcome
) -> float:
    """How long the client waits until it has what it asked for, or may send again."""
    waited_ms = 0.0
    for piece in _pieces(charge.bytes, quota):
        for _ in range(_MOST_TRIES):
            now_ms = int(time_ms + waited_ms)
            rate.record(piece, now_ms)
            throttle_ms = rate.throttle_ms(quota.bytes_per_s, now_ms)
            if not throttle_ms:
                break
            if not waited_ms:
                outcome.throttled_after += charge.weight
            waited_ms += throttle_ms
            _count_after(outcome, throttle_ms)
            if not quota.is_fetch:
                break
            rate.record(-piece, now_ms)
    return waited_ms


def _pieces(size: float, quota: ByteQuota) -> Iterator[float]:
    most = quota.largest_answer() if quota.is_fetch else size
    while size > most > 0:
        yield most
        size -= most
    yield size


def _count_before(outcome: ByteOutcome, charge: Charge) -> None:
    outcome.requests += charge.weight
    outcome.throttled_before += charge.weight * (charge.throttle_ms > 0)
    outcome.throttle_ms_before += charge.weight * charge.throttle_ms


def _count_after(outcome: ByteOutcome, throttle_ms: float) -> None:
    """A sample has the bytes of all that it counts as, so its throttle is that of all."""
    outcome.throttle_ms_after += throttle_ms
    outcome.longest_ms_after = max(outcome.longest_ms_after, throttle_ms)
