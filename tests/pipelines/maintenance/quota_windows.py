"""Windows of `quota_usage` over some days."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from quotaflow.schemas.tables.catalog import TABLES

from ...rows import Row, row

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
    usage, quota = amount / PER[quota_type], others.get("quota")
    used = dict.fromkeys(("usage", "quota_bucket_usage", "peak_usage"), usage)
    none = dict.fromkeys(("is_estimated", "is_quota_changed"), False)
    counts = {"request_count": 3, "throttled_requests": 0, "throttle_time_ms": 0.0}
    counts |= {"amount": amount, "period_s": WINDOW_S, "windows": 1}
    limit = {"headroom": None if quota is None else quota - usage, "enforcement": "stock"}
    limit |= {"quota_type": quota_type, "is_over": quota is not None and usage > quota}
    return row("quota_usage", time, others, **used, **none, **counts, **limit)


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
