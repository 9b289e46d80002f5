"""Whether a cluster is worse after a config change than before it. Pure.

It judges by everybody else: clients whose config changed do not count, because the one that is
limited could otherwise undo its limit by errors of its own. For the same reason the errors of one
principal alone say nothing where there are several.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from quotaflow.udfs.counted import counted, noun

_LEAST_REQUESTS = 20
"""Requests of a principal in each window from which on its share of errors says something."""
_DEGRADED_MINUTES = 2
_RISE_OF_DEGRADED = 0.1
_RISE_OF_ERRORS, _FACTOR_OF_ERRORS = 0.05, 2.0
_PRINCIPALS = 2
"""So many principals must have more errors; one where only one other sends requests."""


@dataclass(frozen=True, slots=True)
class Window:
    """What was seen of a cluster in a time range.

    `degraded_minutes` of its `minutes` had a broker whose clients waited longer than usual, or with
    partitions at min.insync.replicas. `errors`: principal -> requests and errors of it.
    `under_replicated`: replicas out of sync at its end; None where no snapshot shows it.
    """

    minutes: int = 0
    degraded_minutes: int = 0
    errors: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    under_replicated: int | None = None

    @property
    def degraded_share(self) -> float:
        """Share of minutes in which a broker was degraded; 0 of no minutes."""
        return self.degraded_minutes / self.minutes if self.minutes else 0.0


def worse(before: Window, after: Window) -> str | None:
    """Why the cluster is worse in `after` than in `before`; None if it is not."""
    return _latency(before, after) or _replicas(before, after) or _errors(before, after)


def _latency(before: Window, after: Window) -> str | None:
    is_more = after.degraded_share > before.degraded_share + _RISE_OF_DEGRADED
    if after.degraded_minutes < _DEGRADED_MINUTES or not is_more:
        return None
    return (
        f"brokers are degraded in {after.degraded_minutes} of {counted(after.minutes, 'minute')}, "
        f"and were in {before.degraded_minutes} of {before.minutes}"
    )


def _replicas(before: Window, after: Window) -> str | None:
    if before.under_replicated is None or after.under_replicated is None:
        return None
    if after.under_replicated <= before.under_replicated:
        return None
    replicas = counted(after.under_replicated, "replica is", "replicas are")
    were = noun(before.under_replicated, "was", "were")
    return f"{replicas} out of sync, and {before.under_replicated} {were}"


def _errors(before: Window, after: Window) -> str | None:
    shares = {
        principal: (_share(before.errors[principal]), _share(counts))
        for principal, counts in after.errors.items()
        if counts[0] >= _LEAST_REQUESTS
        and before.errors.get(principal, (0.0, 0.0))[0] >= _LEAST_REQUESTS
    }
    risen = [
        principal
        for principal, (was, now) in sorted(shares.items())
        if now > max(was + _RISE_OF_ERRORS, was * _FACTOR_OF_ERRORS)
    ]
    if not risen or len(risen) < min(_PRINCIPALS, len(shares)):
        return None
    was, now = shares[risen[0]]
    return (
        f"{len(risen)} of {counted(len(shares), 'other principal')} "
        f"{noun(len(risen), 'has', 'have')} more errors, such as {risen[0]}: {now:.0%} of its "
        f"requests, and {was:.0%} before"
    )


def _share(counts: tuple[float, float]) -> float:
    requests, errors = counts
    return errors / requests
