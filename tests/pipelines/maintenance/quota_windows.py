"""Windows of `quota_usage` over some days."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from quotaflow.schemas.tables.catalog import TABLES

Row = dict[str, Any]

WINDOW_S = 11
# Midnight is not the start of a window, as on most days.
MIDNIGHT = datetime(2026, 11, 1, tzinfo=UTC)
FIRST = datetime.fromtimestamp(-(-int(MIDNIGHT.timestamp()) // WINDOW_S) * WINDOW_S, UTC)
NOW = MIDNIGHT + timedelta(days=9, hours=12)
PER = {"producer_byte_rate": WINDOW_S, "request_percentage": WINDOW_S * 10_000}


def window(number: int, amount: int, **others: Any) -> Row:
    """What alice's client did in a window, so many windows after midnight."""
    time = FIRST + number * timedelta(seconds=WINDOW_S)
    quota_type = others.get("quota_type", "producer_byte_rate")
    usage = amount / PER[quota_type]
    row = {
        "cluster_id": "c1",
        "event_date": time.date(),
        "event_time": time,
        "broker_id": 1,
        "principal": "User:alice",
        "client_id": "orders",
        "quota_type": quota_type,
        "usage": usage,
        "is_estimated": False,
        "request_count": 3,
        "throttled_requests": 0,
        "throttle_time_ms": 0.0,
        "is_quota_changed": False,
        "quota_bucket_usage": usage,
        "enforcement": "stock",
        "amount": amount,
        "period_s": WINDOW_S,
        "windows": 1,
        "peak_usage": usage,
    }
    quota = others.get("quota")
    headroom = None if quota is None else quota - usage
    return row | {"headroom": headroom, "is_over": quota is not None and usage > quota} | others


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=TABLES["quota_usage"].arrow)


def in_order(rows: pa.Table) -> list[Row]:
    return sorted(
        rows.to_pylist(), key=lambda row: str([row[name] for name in TABLES["quota_usage"].key])
    )


def days(count: int, **others: Any) -> list[Row]:
    """Windows all over some days, at the ends of days too."""
    first_s = (FIRST - MIDNIGHT).seconds
    starts = [-((first_s - d * 86_400) // WINDOW_S) for d in range(count + 1)]
    numbers = [starts[d] + n for d in range(count) for n in (0, 1, 2, 3_000, 3_001)]
    numbers += [start - n for start in starts[1:] for n in (1, 2)]
    return [window(n, 1_000 + n, **others) for n in numbers]
