"""New producer ids (KIP-936): over the quota, and what caused them."""

from collections.abc import Iterator

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.finding import FACT, PROBLEM, Finding, Row
from quotaflow.pipelines.areas.scope import Scope

NAME = "producer_ids"
TABLES = ("producer_id_rates", "producer_id_bursts")

_OVER = (
    "SELECT principal, broker_id, event_time, rate_per_s, quota_per_s, throttle_time_ms, "
    "count(*) OVER (PARTITION BY principal) AS seconds FROM producer_id_rates "
    "WHERE {of_cluster} AND {is_principal} AND {within:event_time} AND is_violating "
    "QUALIFY row_number() OVER (PARTITION BY principal ORDER BY throttle_time_ms DESC, "
    "event_time, broker_id) = 1 ORDER BY throttle_time_ms DESC, principal"
    " LIMIT {limit}"
)
_BURSTS = (
    "SELECT * FROM producer_id_bursts WHERE {of_cluster} AND {is_principal} "
    "AND ended_at >= {since} AND started_at < {until} "
    "ORDER BY is_accused DESC, ids DESC, started_at LIMIT 5"
)


def findings(scope: Scope) -> Iterator[Finding]:
    """Principals over their quota, and bursts with their cause, which can be a deploy."""
    bursts = scope.rows(_BURSTS)
    innocent = {row["principal"] for row in bursts}
    innocent -= {row["principal"] for row in bursts if row["is_accused"]}
    for row in scope.rows(_OVER):
        yield _over(row, is_innocent=row["principal"] in innocent)
    for row in bursts:
        yield _burst(row)


def _over(row: Row, *, is_innocent: bool) -> Finding:
    return Finding(
        text=(
            f"{row['principal']} took new producer ids at {row['rate_per_s']:.1f} per second at "
            f"broker {row['broker_id']}, and conf allows {row['quota_per_s']:g}: over it for "
            f"{row['seconds']} s. No stock broker throttles that (KIP-936)."
        ),
        state=FACT if is_innocent else PROBLEM,
        next_step=None if is_innocent else "see the view producer_id_advice",
        evidence_table="producer_id_rates",
        evidence=row,
    )


_NORMAL = {"deploy_burst", "epoch_exhaustion"}


def _burst(row: Row) -> Finding:
    cure = reasons.cure(row["cause"])
    is_normal = ", which is normal" if row["cause"] in _NORMAL else ""
    return Finding(
        text=f"{row['principal']}: cause: {row['cause']}{is_normal}: {reasons.burst(row)}.",
        state=PROBLEM if row["is_accused"] else FACT,
        next_step=f"{cure}; producer_id_offenders has what a plan may limit" if cure else None,
        evidence_table="producer_id_bursts",
        evidence=row,
    )
