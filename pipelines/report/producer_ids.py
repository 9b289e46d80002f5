"""The section on new producer ids by principal: quotas, causes, advice (KIP-936)."""

from collections.abc import Sequence

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.producer_ids import HEAP, OFFENDERS, PROBLEMS, RATES
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report.plots import MAX_SERIES, by_name, lines
from quotaflow.pipelines.report.section import (
    Figure,
    Grid,
    GridColumn,
    ReportSection,
    code,
    grid,
    nothing,
    number,
    section_of,
    text,
)
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted

TITLE = "Producer ids"
_TABLE, _USES = "producer_id_rates", "producer_id_uses"


def _recommendation(row: Row) -> str:
    return "" if row["recommended_by"] is None else reasons.recommendation(row)


_COLUMNS = (
    text("principal", "principal"),
    code("cause", "producer_id_bursts", "cause"),
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
    rows = scope.ask_if_made(HEAP)
    missing = nothing(scope, _USES)
    if not rows:
        return ReportSection(sentences=(nothing(scope, _TABLE),))
    worse = [row for row in rows if row["recommended_expiration_ms"] is not None]
    entries = sum(row["entries"] for row in rows)
    sentence = f"Brokers have {counted(entries, 'entry', 'entries')} of producer ids."
    advice = "`quotaflow plan` says which expiration limits their heap." if worse else texts.NO_STEP
    return ReportSection(
        time_range="as of the last snapshot",
        sentences=(sentence,),
        advice=advice,
        grids=(_heap(rows),),
        left_out=(f"Who took them, and why: {missing}",),
    )


@section_of(TITLE, PROBLEMS)
def section(scope: Scope) -> ReportSection:
    """Principals by their new producer ids, those over their quota first."""
    rows = scope.ask_if_made(OFFENDERS)
    if not rows:
        return _of_snapshots(scope)
    accused = [row for row in rows if row["is_accused"]]
    causes = {row["cause"]: reasons.cure(row["cause"]) for row in accused}
    first = rows[0]
    return ReportSection(
        time_range=texts.time_range(*scope.extent(_TABLE)),
        sentences=(_taken(first), *_blame(accused)),
        advice=texts.to_do([*filter(None, causes.values())]) if accused else _fit(first),
        charts=(_chart(scope, rows),),
        grids=(
            grid("Who took new producer ids, offenders first", rows, _COLUMNS, "Nobody."),
            _heap(scope.ask_if_made(HEAP)),
        ),
        left_out=(
            "The cause is that of the worst burst. `quotaflow what-if --producer-ids-rate R` shows "
            "what a quota does.",
        ),
    )


def _taken(first: Row) -> str:
    taken = (
        f"{counted(first['takers'], 'principal')} took {counted(first['all_new_ids'], 'new id')}; "
    )
    if not first["limited"]:
        return taken + "conf sets no quota for them (producer_ids)."
    return taken + (
        f"{first['violators']:,} of {first['limited']:,} with a quota in conf exceeded it. "
        "Brokers do not enforce it."
    )


def _fit(first: Row) -> str:
    if not first["limited"]:
        return "No step is needed: no burst accuses a principal."
    if not first["violators"]:
        return "No step is needed: all stayed within their quota."
    return "No burst accuses a principal: check whether the quota of conf is too low."


def _blame(accused: Sequence[Row]) -> tuple[str, ...]:
    return tuple(
        f"{texts.listed(reasons.accused_burst(row), texts.SENTENCE_CHARS)}; "
        f"{texts.listed(reasons.burst(row), texts.SENTENCE_CHARS)}."
        for row in accused[:3]
    )


def _chart(scope: Scope, rows: Sequence[Row]) -> Figure:
    step_s, rates = scope.steps(_TABLE, RATES, series=str(MAX_SERIES))
    quotas = {row["quota_per_s"] for row in rows if row["quota_per_s"] is not None}
    limit = ("quota of all", quotas.pop()) if len(quotas) == 1 else None
    series = by_name(rates, "principal", "rate_per_s")
    shown = f"the first {counted(len(series), 'principal')}, by their highest rate on one broker"
    return Figure(
        lines(series, "new ids per s", step_s, limit),
        f"New producer ids per second, {shown} in steps of {texts.duration(step_s * 1e3)}",
    )
