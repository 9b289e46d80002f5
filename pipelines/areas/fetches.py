"""Limits of fetches (KIP-74): settings of a client that do not fit what it reads."""

from collections.abc import Iterator

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.finding import PROBLEM, Finding, Row, client_text, last_day
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.udfs.counted import counted

NAME = "fetch_limits"
TABLES = ("fetch_advice", "fetch_sizes")

_ADVICE = (
    "SELECT * FROM fetch_advice WHERE {of_cluster} AND {is_client} AND replica_id IS NULL "
    "ORDER BY bytes_per_s DESC, advice, client_id"
    " LIMIT {limit}"
)
_LIMITED = (
    "SELECT principal, client_id, CAST(sum(fetches) AS BIGINT) AS fetches, "
    "CAST(sum(starved_fetches) AS BIGINT) AS starved_fetches, "
    "CAST(sum(max_bytes_fetches + partition_max_bytes_fetches + first_batch_fetches) AS BIGINT) "
    "AS client_limit_fetches, CAST(sum(broker_cap_fetches) AS BIGINT) AS broker_cap_fetches, "
    "CAST(sum(quota_window_fetches + throttled_fetches) AS BIGINT) AS quota_fetches, "
    "CAST(sum(error_fetches) AS BIGINT) AS error_fetches "
    "FROM fetch_sizes WHERE {of_cluster} AND {is_client} AND replica_id IS NULL "
    "AND {within:event_time} "
    "GROUP BY principal, client_id HAVING sum(max_bytes_fetches + partition_max_bytes_fetches + "
    "first_batch_fetches + broker_cap_fetches + quota_window_fetches + throttled_fetches + "
    "error_fetches + starved_fetches) > 0 ORDER BY fetches DESC, principal, client_id"
    " LIMIT {limit}"
)


def findings(scope: Scope) -> Iterator[Finding]:
    """Settings to change with their price, and what ended answers before all data was read."""
    if not scope.is_recent:
        yield last_day("fetch_advice")
    for row in scope.rows(_ADVICE) if scope.is_recent else ():
        price = reasons.trade_off(row)
        yield Finding(
            text=f"{client_text(row)}: {row['advice'].replace('_', ' ')}.",
            state=PROBLEM,
            next_step=reasons.fetch_step(row) + (f"; the price: {price}" if price else ""),
            evidence_table="fetch_advice",
            evidence=row,
        )
    for row in scope.rows(_LIMITED):
        yield _limited(row)


def _limited(row: Row) -> Finding:
    parts = {
        "a limit of the client": row["client_limit_fetches"],
        "the cap of the broker": row["broker_cap_fetches"],
        "a quota": row["quota_fetches"],
        "an error": row["error_fetches"],
    }
    ended = ", ".join(f"{count} by {what}" for what, count in parts.items() if count)
    starved = row["starved_fetches"]
    left = f"; partitions that had data were left out by {starved:,}" if starved else ""
    return Finding(
        text=(
            f"{client_text(row)}: of {counted(row['fetches'], 'fetch', 'fetches')} "
            f"{ended or 'none'} ended early{left}."
        ),
        evidence_table="fetch_sizes",
        evidence=row,
    )
