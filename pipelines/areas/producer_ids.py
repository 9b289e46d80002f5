"""New producer ids (KIP-936): who is over the quota, what caused them, and what brokers keep."""

from collections.abc import Iterator, Sequence

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.finding import NOW, SOON, Finding, RowProblem
from quotaflow.pipelines.areas.question import Question, Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted

NAME = "producer_ids"
TABLES = ("producer_id_rates", "producer_id_bursts")

_MAX_BURSTS = 5
_BURSTS = Question(
    "SELECT * FROM producer_id_bursts WHERE {of_cluster} AND {is_principal} "
    "AND {within:started_at:ended_at}",
    "is_accused DESC, ids DESC, started_at",
)
_OVER = """
SELECT rates.*, coalesce(bursts.is_explained, false) AS is_explained
FROM (
    SELECT *,
        max(broker_seconds) OVER (PARTITION BY cluster_id, principal) AS seconds,
        row_number() OVER (
            PARTITION BY cluster_id, principal
            ORDER BY rate_per_s DESC, throttle_time_ms DESC, event_time, broker_id) AS nth
    FROM (
        SELECT cluster_id, principal, broker_id, event_time, rate_per_s, quota_per_s,
            throttle_time_ms,
            count(CASE WHEN is_violating THEN 1 END)
                OVER (PARTITION BY cluster_id, principal, broker_id, kind) AS broker_seconds
        FROM producer_id_rates
        WHERE {of_cluster} AND {is_principal} AND {within:event_time} AND quota_per_s IS NOT NULL
    ) AS seen
) AS rates
LEFT JOIN (
    SELECT DISTINCT cluster_id, principal, true AS is_explained
    FROM producer_id_bursts
    WHERE {of_cluster} AND {is_principal} AND {within:started_at:ended_at}
) AS bursts ON rates.cluster_id = bursts.cluster_id AND rates.principal = bursts.principal
WHERE rates.nth = 1 AND rates.seconds > 0
"""
_OVER_QUOTA = Question(_OVER, "throttle_time_ms DESC, principal")
_OFFENDERS = """
WITH seen AS (
    SELECT
        cluster_id,
        principal,
        max(rate_per_s) AS rate_per_s,
        max(quota_per_s) AS quota_per_s,
        max(throttle_time_ms) AS throttle_time_ms,
        max(CASE WHEN is_violating THEN 1 ELSE 0 END) = 1 AS is_violating
    FROM producer_id_rates
    WHERE {of_cluster} AND {within:event_time} AND kind = 'allocation'
    GROUP BY cluster_id, principal
),
given AS (
    SELECT cluster_id, principal, count(*) AS new_ids
    FROM producer_id_allocations
    WHERE {of_cluster} AND {within:allocated_at}
    GROUP BY cluster_id, principal
)
SELECT
    seen.*,
    coalesce(given.new_ids, 0) AS new_ids,
    cause,
    coalesce(is_accused, false) AS is_accused,
    source,
    started_at,
    ended_at,
    ids,
    clients,
    hosts,
    source_ids,
    source_clients,
    median_gap_ms,
    requests_per_id,
    new_transactional_ids,
    abandoned_ids,
    recommended_rate_per_s,
    recommended_by,
    coalesce(sum(given.new_ids) OVER (PARTITION BY seen.cluster_id), 0) AS all_new_ids,
    count(given.new_ids) OVER (PARTITION BY seen.cluster_id) AS takers,
    count(CASE WHEN seen.is_violating THEN 1 END) OVER (PARTITION BY seen.cluster_id) AS violators,
    count(seen.quota_per_s) OVER (PARTITION BY seen.cluster_id) AS limited
FROM seen
LEFT JOIN given ON seen.cluster_id = given.cluster_id AND seen.principal = given.principal
LEFT JOIN producer_id_advice AS advised
    ON seen.cluster_id = advised.cluster_id AND seen.principal = advised.principal
"""
OFFENDERS = Question(_OFFENDERS, "is_accused DESC, throttle_time_ms DESC, new_ids DESC, principal")
"""Who took new producer ids, with the worst burst of each in all of the tables."""
_LIMITS = Question(
    "SELECT * FROM producer_id_offenders WHERE {of_cluster} AND {is_principal}",
    "blocked_reason NULLS FIRST, nth_of_principal, principal, client_address",
)
"""Which limits a plan would set, and why it may not."""
GIVEN_IDS = "(SELECT cluster_id, allocated_at AS event_time FROM producer_id_allocations) AS ids"
"""A row per producer id when a broker gave it: later requests name it again."""
HEAP = Question(
    "SELECT cluster_id, broker_id, entries, heap_bytes, forecast_bytes, expiration_ms, "
    "recommended_expiration_ms FROM producer_id_heap WHERE {of_cluster}",
    "forecast_bytes DESC, broker_id",
)
"""What ids cost the heap of brokers."""


RATES = """
WITH ranked AS (
    SELECT principal, row_number() OVER (ORDER BY max(rate_per_s) DESC, principal) AS nth
    FROM producer_id_rates
    WHERE {of_cluster} AND {within:event_time} AND kind = 'allocation'
    GROUP BY principal
)
SELECT
    rates.principal,
    unix_micros(rates.event_time) // 1000000 // {step} * {step} AS second,
    max(rates.rate_per_s) AS rate_per_s
FROM (
    SELECT * FROM producer_id_rates
    WHERE {of_cluster} AND {within:event_time} AND kind = 'allocation'
) AS rates
INNER JOIN ranked ON rates.principal = ranked.principal AND ranked.nth <= {series}
GROUP BY 1, 2, ranked.nth
ORDER BY ranked.nth, second
"""
"""Rates of the principals with the highest, in steps of a chart."""
RATES_BY_MINUTE = Question(
    """
SELECT cluster_id, date_trunc('minute', event_time) AS minute, principal,
    max(rate_per_s) AS rate_per_s
FROM producer_id_rates
WHERE {of_cluster} AND kind = 'allocation' AND {within:event_date}
GROUP BY cluster_id, date_trunc('minute', event_time), principal
""",
    "minute",
)
BY_ADVICE = Question(
    "SELECT * FROM producer_id_advice WHERE {of_cluster} AND {within:started_at:ended_at}",
    "is_accused DESC, new_ids DESC",
)
"""Principals by the worst burst of each."""


def _accused(rows: Sequence[Row]) -> str:
    first, code = rows[0]["principal"], rows[0]["cause"]
    why = reasons.text_of_code(("producer_id_bursts", "cause"), code)
    others = texts.names(row["principal"] for row in rows if row["principal"] != first)
    # Each has a cause of its own, which `why` says.
    more = f" {others} also took too many." if others else ""
    return f"{texts.listed(first)} took too many producer ids: {why}.{more}"


def _cure(rows: Sequence[Row]) -> str:
    cure = reasons.cure(rows[0]["cause"])
    return f"In the program of {texts.listed(rows[0]['principal'])}: {cure}." if cure else ""


ACCUSED = RowProblem(
    code="producer_ids_accused",
    severity=NOW,
    subjects="principals accused over producer ids",
    subject=("principal",),
    table="producer_id_bursts",
    question=_BURSTS.where("is_accused"),
    summary=_accused,
    action=_cure,
)
OVER = RowProblem(
    code="producer_ids_over_quota",
    severity=SOON,
    subjects="principals over their quota of producer ids",
    subject=("principal",),
    table="producer_id_rates",
    question=_OVER_QUOTA.where("NOT is_explained"),
    summary=lambda rows: (
        f"{texts.names(row['principal'] for row in rows)} took more producer ids than conf allows."
    ),
)
PROBLEMS = (ACCUSED, OVER)


def findings(scope: Scope) -> Iterator[Finding]:
    """Principals over their quota, and bursts with their cause, which can be a deploy."""
    bursts = scope.ask(_BURSTS)[:_MAX_BURSTS]
    for row in scope.ask(_OVER_QUOTA):
        yield _over(row)
    for row in bursts:
        yield _burst(scope, row)


def _over(row: Row) -> Finding:
    return Finding(
        text=(
            f"{row['principal']} took new producer ids, up to {texts.number(row['rate_per_s'])} "
            f"per second at broker {row['broker_id']}; the quota of conf is "
            f"{row['quota_per_s']:g}. "
            f"{row['principal']} exceeded the quota for {texts.duration(row['seconds'] * 1e3)}; "
            "brokers do not enforce it (KIP-936)."
        ),
        # A burst says why, and accuses if somebody is to blame.
        problem=None if row["is_explained"] else OVER,
        is_hint=row["is_explained"],
        next_step="see the advised quota in `quotaflow show producer_id_advice`",
        evidence_table="producer_id_rates",
        evidence=row,
    )


_NORMAL = {"deploy_burst", "epoch_exhaustion"}


def _burst(scope: Scope, row: Row) -> Finding:
    steps = [reasons.cure(row["cause"]), _limit(scope, row) if row["is_accused"] else None]
    why = reasons.text_of_code(("producer_id_bursts", "cause"), row["cause"])
    is_normal = ", which is normal" if row["cause"] in _NORMAL else ""
    return Finding(
        text=(
            f"{row['principal']} took {counted(row['ids'], 'new producer id')}: {why}{is_normal}. "
            f"In numbers: {reasons.burst(row)}."
        ),
        problem=ACCUSED if row["is_accused"] else None,
        next_step="; ".join(filter(None, steps)) or None,
        evidence_table="producer_id_bursts",
        evidence=row,
    )


def _limit(scope: Scope, row: Row) -> str | None:
    """Whether a plan would limit who took the ids; None if it is no offender."""
    if not scope.reader.is_made("producer_id_offenders"):
        return None
    rows = [each for each in scope.ask(_LIMITS) if each["principal"] == row["principal"]]
    if not rows:
        return None
    blocked = reasons.blocked_reason(rows[0])
    if blocked is None:
        return "`quotaflow show producer_id_offenders` shows which limit a plan would set"
    return f"no plan limits the ids now: {blocked}"
