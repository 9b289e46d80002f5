"""Requests of share consumers with made bodies."""

from typing import Any

from ....rows import Row
from .group_rows import request

ID = "topic-1"
LOCK_MS = 30_000
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
Range = tuple[int, int]


def _partitions(by_number: dict[int, Row]) -> list[Row]:
    parts = [{"partitionIndex": n} | row for n, row in by_number.items()]
    return [{"topicId": ID, "partitions": parts}] if parts else []


def fetch(
    second: float, acquired: dict[Range, int] | None = None, member: str = "m", **others: Any
) -> Row:
    """A SHARE_FETCH answered with ranges of partition 0 by their delivery count.

    `acknowledged` are ranges with their types; `errors` are of the partition.
    """
    batches = acknowledgements(others.pop("acknowledged", {}))
    epoch, answered = others.pop("epoch", 5), others.pop("errors", {})
    ranges = [
        {"firstOffset": first, "lastOffset": last, "deliveryCount": count}
        for (first, last), count in (acquired or {}).items()
    ]
    if ranges or answered:
        answered = {
            0: {"errorCode": 0, "acknowledgeErrorCode": 0, "acquiredRecords": ranges} | answered
        }
    return request(
        second,
        "SHARE_FETCH",
        {"memberId": member, "shareSessionEpoch": epoch, "maxBytes": 1_000_000}
        | {"topics": _partitions({0: batches} if batches["acknowledgementBatches"] else {})},
        {"acquisitionLockTimeoutMs": LOCK_MS, "responses": _partitions(answered)},
        **others,
    )


def acknowledgements(by_range: dict[Range, list[int]]) -> Row:
    return {
        "acknowledgementBatches": [
            {"firstOffset": first, "lastOffset": last, "acknowledgeTypes": types}
            for (first, last), types in by_range.items()
        ]
    }


def acknowledge(
    second: float, by_range: dict[Range, list[int]], member: str = "m", code: int = 0, **others: Any
) -> Row:
    """A SHARE_ACKNOWLEDGE for partition 0, answered with this error."""
    return request(
        second,
        "SHARE_ACKNOWLEDGE",
        {"memberId": member, "shareSessionEpoch": others.pop("epoch", 5)}
        | {"topics": _partitions({0: acknowledgements(by_range)} if by_range else {})},
        {"responses": _partitions({0: {"errorCode": code}} if by_range else {})},
        **others,
    )
