"""The section on new producer ids by principal: quotas, causes, advice (KIP-936)."""

from collections.abc import Sequence

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas import texts
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report.charts import MAX_SERIES, by_name, lines
from quotaflow.pipelines.report.section import (
    MAX_ROWS,
    NOW,
    SOON,
    Alarm,
    Chart,
    Grid,
    GridColumn,
    ReportSection,
    Row,
    grid,
    number,
    text,
)
from quotaflow.udfs.counted import counted

TITLE = "Producer ids"
_TABLE, _USES = "producer_id_rates", "producer_id_uses"
_OFFENDERS = f"""
WITH seen AS (
    SELECT
        principal,
        coalesce(sum(new_ids), 0) AS new_ids,
        max(rate_per_s) AS rate_per_s,
        max(quota_per_s) AS quota_per_s,
        max(throttle_time_ms) AS throttle_time_ms,
        max(CASE WHEN is_violating THEN 1 ELSE 0 END) = 1 AS is_violating
    FROM {_TABLE}
    WHERE cluster_id = {{cluster}} AND event_time >= {{since}} AND kind = 'allocation'
    GROUP BY principal
),
advised AS (
    SELECT
        principal, cause, is_accused, source, started_at, ended_at, ids, clients, hosts, source_ids,
        source_clients, median_gap_ms, requests_per_id, new_transactional_ids, abandoned_ids,
        recommended_rate_per_s, recommended_by
    FROM producer_id_advice
    WHERE cluster_id = {{cluster}}
)
SELECT
    seen.*,
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
    sum(new_ids) OVER () AS all_new_ids,
    count(CASE WHEN is_violating THEN 1 END) OVER () AS violators,
    count(quota_per_s) OVER () AS limited,
    count(*) OVER () AS of_all
FROM seen
LEFT JOIN advised ON seen.principal = advised.principal
ORDER BY is_accused DESC, throttle_time_ms DESC, new_ids DESC, seen.principal
LIMIT {MAX_ROWS}
"""
_RATES = f"""
WITH ranked AS (
    SELECT principal, row_number() OVER (ORDER BY max(rate_per_s) DESC, principal) AS nth
    FROM {_TABLE}
    WHERE cluster_id = {{cluster}} AND event_time >= {{since}} AND kind = 'allocation'
    GROUP BY principal
)
SELECT
    rates.principal,
    epoch_us(rates.event_time) // 1000000 // {{step}} * {{step}} AS second,
    max(rates.rate_per_s) AS rate_per_s
FROM {_TABLE} AS rates
INNER JOIN ranked ON rates.principal = ranked.principal AND ranked.nth <= {MAX_SERIES}
WHERE cluster_id = {{cluster}} AND event_time >= {{since}} AND kind = 'allocation'
GROUP BY 1, 2, ranked.nth
ORDER BY ranked.nth, second
"""
_HEAP = """
SELECT broker_id, entries, heap_bytes, forecast_bytes, expiration_ms, recommended_expiration_ms
FROM producer_id_heap
WHERE cluster_id = {cluster}
ORDER BY forecast_bytes DESC, broker_id
LIMIT 20
"""


def _recommendation(row: Row) -> str:
    return "" if row["recommended_by"] is None else reasons.recommendation(row)


_COLUMNS = (
    text("principal", "principal"),
    text("cause", "cause"),
    text("most of them by", "source"),
    number("new ids", "new_ids"),
    number("most per s", "rate_per_s"),
    number("quota per s", "quota_per_s"),
    number("advised per s", "recommended_rate_per_s"),
    GridColumn("which is", _recommendation),
    number("longest throttle", "throttle_time_ms", texts.duration),
)
_HEAP_COLUMNS = (
    text("broker", "broker_id"),
    number("entries", "entries"),
    number("heap", "heap_bytes", texts.size),
    number("forecast heap", "forecast_bytes", texts.size),
    number("ids expire after", "expiration_ms", texts.duration),
    number("advised", "recommended_expiration_ms", texts.duration),
)


def _heap(rows: Sequence[Row]) -> Grid:
    return grid(
        "What ids cost the heap of brokers, as of the last snapshot",
        rows,
        _HEAP_COLUMNS,
        "No snapshot has the ids of brokers: `quotaflow snapshot`.",
    )


def _of_snapshots(scope: Scope) -> ReportSection:
    """What ids cost brokers. Who took them only a request log shows."""
    rows = scope.rows_if_made(_HEAP)
    missing = scope.nothing(_USES)
    if not rows:
        return ReportSection(TITLE, sentences=(scope.nothing(_TABLE),))
    worse = [row for row in rows if row["recommended_expiration_ms"] is not None]
    entries = sum(row["entries"] for row in rows)
    sentence = f"Leaders have {counted(entries, 'entry', 'entries')} of producer ids."
    advice = "`quotaflow plan` says which expiration limits their heap." if worse else "Nothing."
    return ReportSection(
        TITLE,
        time_range="as of the last snapshot",
        sentences=(sentence,),
        advice=advice,
        grids=(_heap(rows),),
        left_out=(f"Who took them, and why: {missing}",),
    )


def section(scope: Scope) -> ReportSection:
    """Principals by their new producer ids, those over their quota first."""
    rows = scope.rows_if_made(_OFFENDERS)
    if not rows:
        return _of_snapshots(scope)
    accused = [row for row in rows if row["is_accused"]]
    causes = {row["cause"]: reasons.cure(row["cause"]) for row in accused}
    first = rows[0]
    return ReportSection(
        TITLE,
        time_range=texts.time_range(*scope.extent(_TABLE)),
        sentences=(_taken(first), *_blame(accused)),
        advice="; ".join(f"{cause}: {what}" for cause, what in causes.items()) or _fit(first),
        charts=(_chart(scope, rows),),
        grids=(
            grid("Who took new producer ids, offenders first", rows, _COLUMNS, "Nobody."),
            _heap(scope.rows_if_made(_HEAP)),
        ),
        left_out=(
            "The rates are open loop: nobody was throttled. Causes are read off the worst burst in "
            "all of the tables; `quotaflow what-if --producer-ids-rate R` tells what a quota does.",
        ),
        alarms=_alarms(rows, accused),
    )


def _taken(first: Row) -> str:
    taken = (
        f"{counted(first['of_all'], 'principal')} took {counted(first['all_new_ids'], 'new id')}; "
    )
    if not first["limited"]:
        return taken + "conf sets no quota for them (producer_ids)."
    return taken + (
        f"{first['violators']:,} of {first['limited']:,} with a quota in conf (producer_ids) went "
        "over it. Stock brokers do not enforce it."
    )


def _fit(first: Row) -> str:
    if not first["limited"]:
        return "Nothing: nobody is accused."
    if not first["violators"]:
        return "Nothing: all stayed within their quota."
    return "Nobody is accused; check whether the quota of conf fits those who went over it."


def _blame(accused: Sequence[Row]) -> tuple[str, ...]:
    return tuple(
        f"{texts.listed(reasons.accused_burst(row), texts.SENTENCE_CHARS)}: "
        f"{texts.listed(reasons.burst(row), texts.SENTENCE_CHARS)}."
        for row in accused[:3]
    )


def _chart(scope: Scope, rows: Sequence[Row]) -> Chart:
    step_s, rates = scope.steps(_TABLE, _RATES)
    quotas = {row["quota_per_s"] for row in rows if row["quota_per_s"] is not None}
    limit = ("quota of all", quotas.pop()) if len(quotas) == 1 else None
    series = by_name(rates, "principal", "rate_per_s")
    shown = f"the first {counted(len(series), 'principal')}, by their highest rate on one broker"
    return Chart(
        lines(series, "new ids per s", step_s, limit),
        f"New producer ids per second, {shown} in steps of {texts.duration(step_s * 1e3)}",
    )


def _alarms(rows: Sequence[Row], accused: Sequence[Row]) -> tuple[Alarm, ...]:
    if accused:
        principals = texts.names(row["principal"] for row in accused)
        causes = texts.names(row["cause"].replace("_", " ") for row in accused)
        words = f"Too many producer ids are taken, by {principals}. Why: {causes}."
        cure = reasons.cure(accused[0]["cause"])
        principal = texts.listed(accused[0]["principal"])
        return (Alarm(NOW, words, f"First {principal}: {cure}." if cure else ""),)
    over = [row["principal"] for row in rows if row["is_violating"]]
    return (Alarm(SOON, f"{texts.names(over)} took more ids than their quota."),) if over else ()
