"""Rows of a cluster whose heap fits, and where clients of a broker wait while ids are taken."""

from collections.abc import Iterable
from typing import Any

from ...rows import Row, replicated, request, use
from .limit_rows import ADDRESS, OFFENDER, cluster, heap, history, ids, loop


def served(slow: Iterable[int], **others: Any) -> list[Row]:
    """PRODUCE requests of others to broker 2 in ten minutes, of which some are slow."""
    bad = set(slow)
    by: Row = {"broker_id": 2, "principal": "User:dora"}
    return [
        request(60 * minute + n, "PRODUCE", **by, total_time_ms=5e3 if minute in bad else 10.0)
        | others
        for minute in range(10)
        for n in range(30)
    ]


def taken(per_minute: int, minutes: Iterable[int] = range(10), **others: Any) -> list[Row]:
    """Ids that the offender took at broker 2."""
    owner: Row = {"principal": OFFENDER, "client_address": ADDRESS, "client_id": "loop"}
    owner |= {"client_pattern": "loop", "broker_id": 2}
    return [
        use(60 * n, 50_000 + n, **owner | {"allocations": per_minute} | others) for n in minutes
    ]


def waits(
    slow: Iterable[int] = (7, 8, 9), *uses: Row, began: int = 0, **others: Any
) -> dict[str, list[Row]]:
    """A cluster whose heap fits, and where clients of broker 2 wait."""
    return cluster(
        active_producers=heap(5),
        requests=served(slow),
        replication_traffic=[replicated(540, 1, 2)],
        address_clients=[*history(), *loop()[began:]],
        producer_id_uses=[*ids(), *uses],
        **others,
    )


SLOW = waits((7, 8, 9), *taken(700))
