"""Limits of fetches (KIP-74): settings of a client that do not fit what it reads."""

from collections.abc import Iterator

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.finding import SOMETIME, Finding, RowProblem, client_text, last_day
from quotaflow.pipelines.areas.question import OF_ALL, Question, Row, of_users
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.udfs.counted import counted

NAME = "fetch_limits"
TABLES = ("fetch_advice", "fetch_sizes")

SETTINGS = Question(
    "SELECT * FROM fetch_advice WHERE {of_cluster} AND {is_client}",
    "bytes_per_s DESC, advice, principal, client_id",
)
"""Settings of fetches to change."""
_FETCHES = (
    "SELECT 1 AS n FROM fetch_sizes WHERE {of_cluster} AND {is_client} AND replica_id IS NULL "
    "AND event_time >= {results_since} LIMIT 1"
)
"""Whether a name fetches at all: a producer has no settings of fetches."""
# What bounds an answer, the best case first.
BOUNDS = {
    "all there was": "drained_fetches",
    "empty: waited in vain": "wait_timeout_fetches",
    "a limit of the client": "max_bytes_fetches + partition_max_bytes_fetches"
    " + first_batch_fetches",
    "a limit of the broker": "broker_cap_fetches",
    "a quota": "quota_window_fetches + throttled_fetches",
    "sent elsewhere or an error": "redirected_fetches + error_fetches",
}
"""What limited an answer, in words; the n-th is the column part_n of SIZES."""
SIZES = Question(
    f"""
SELECT
    cluster_id,
    principal,
    client_id,
    {", ".join(f"sum({sql}) AS part_{place}" for place, sql in enumerate(BOUNDS.values()))},
    sum(fetches) AS fetches,
    sum(bytes) AS bytes,
    max(max_response_bytes) AS max_response_bytes,
    CASE WHEN count(bound_bytes) = count(*) AND sum(oversized_batches) = 0 THEN max(bound_bytes) END
        AS bound_bytes,
    sum(starved_fetches) AS starved_fetches
FROM fetch_sizes
WHERE {{of_cluster}} AND {{within:event_time}} AND replica_id IS NULL
    AND {of_users("fetch_sizes")}
GROUP BY cluster_id, principal, client_id
""",
    "fetches DESC, principal, client_id",
)
"""Consumers by their number of fetches."""
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


def fetcher(row: Row) -> str:
    """Who fetches: a follower or a client."""
    if row["replica_id"] is not None:
        return f"follower {row['replica_id']}"
    return client_text(row)


FETCH_SETTING = RowProblem(
    code="fetch_setting",
    severity=SOMETIME,
    subjects="fetch settings to change",
    subject=("principal", "client_id", "replica_id", "advice", "setting"),
    table="fetch_advice",
    question=SETTINGS,
    summary=lambda rows: f"{counted(rows[0][OF_ALL], 'fetch setting')} should be changed.",
    action=lambda rows: f"First change the setting of {fetcher(rows[0])}: see the list.",
)
PROBLEMS = (FETCH_SETTING,)


def findings(scope: Scope) -> Iterator[Finding]:
    """Settings to change with their price, and what ended answers before all data was read."""
    if not scope.is_recent:
        yield last_day("fetch_advice")
    has_settings = scope.is_recent and scope.rows(_FETCHES)
    for row in scope.ask(SETTINGS.where("replica_id IS NULL")) if has_settings else ():
        price = reasons.trade_off(row)
        why = reasons.text_of_code(("fetch_advice", "advice"), row["advice"])
        yield FETCH_SETTING.of_row(
            row,
            f"{client_text(row)}: {why}.",
            reasons.fetch_step(row) + (f"; the price: {price}" if price else ""),
        )
    for row in scope.facts(_LIMITED):
        yield _limited(row)


def _limited(row: Row) -> Finding:
    parts = {
        "a limit of the client": row["client_limit_fetches"],
        "fetch.max.bytes of the broker": row["broker_cap_fetches"],
        "a quota": row["quota_fetches"],
        "an error": row["error_fetches"],
    }
    ended = ", ".join(f"{count:,} by {what}" for what, count in parts.items() if count)
    starved = row["starved_fetches"]
    left = ""
    if starved:
        left = f"; {counted(starved, 'answer')} left out partitions with data"
    return Finding(
        text=(
            f"{client_text(row)} sent {counted(row['fetches'], 'fetch', 'fetches')}; "
            f"{f'answers that ended early: {ended}' if ended else 'no answer ended early'}{left}."
        ),
        evidence_table="fetch_sizes",
        evidence=row,
    )
