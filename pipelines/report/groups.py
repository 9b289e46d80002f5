"""The section on groups: who is behind, why, and what helps."""

from collections.abc import Sequence

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.groups import CAUSES, LAGS, PROBLEMS, first_causes
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report.charts import MAX_BARS, bars
from quotaflow.pipelines.report.section import (
    Figure,
    GridColumn,
    ReportSection,
    grid,
    number,
    seconds,
    section_of,
    text,
)
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted

TITLE = "Groups"
_TABLE = "group_lag"
_WHY = (
    text("group", "group_id"),
    text("topic", "topic"),
    number("records left", "lag"),
    GridColumn("trend", lambda row: row["trend"].replace("_", " ")),
    GridColumn("cause", lambda row: texts.listed(reasons.lag_cause(row), 200)),
    GridColumn("what helps", lambda row: texts.listed(reasons.lag_step(row), 300)),
)


_BEHIND = (
    text("group", "group_id"),
    text("type", "group_type"),
    text("topic", "topic"),
    number("records left", "lag"),
    seconds("the oldest is", "lag_s"),
    number("written per s", "records_in_per_s"),
    number("read per s", "records_out_per_s"),
    seconds("caught up in", "caught_up_in_s"),
    number("partitions", "partitions"),
    number("read by nobody", "unread_partitions"),
)


@section_of(TITLE, PROBLEMS, _TABLE)
def section(scope: Scope) -> ReportSection:
    """Groups by their lag, and the causes of lags of more than a minute."""
    lags, causes = scope.ask(LAGS), scope.ask_if_made(CAUSES)
    return ReportSection(
        time_range=texts.time_range(*scope.extent(_TABLE)),
        sentences=(_sentence(lags, causes),),
        advice=_advice(causes),
        charts=_charts(lags),
        grids=(
            grid("Why groups lag, the surest cause first", causes, _WHY, "No group lags."),
            grid("Groups by the records that are left", lags, _BEHIND, "No group has offsets."),
        ),
        left_out=_left_out(scope),
    )


def _sentence(lags: Sequence[Row], causes: Sequence[Row]) -> str:
    every = lags[0]["of_all"] if lags else 0
    pairs = counted(every, "pair of group and topic is", "pairs of group and topic are")
    behind = texts.names(row["group_id"] for row in first_causes(causes)) or "none"
    return f"{pairs} known; more than a minute behind: {behind}."


def _advice(causes: Sequence[Row]) -> str:
    """What to do; each part has rows that call for it."""
    parts = []
    if causes:
        groups = texts.names(row["group_id"] for row in first_causes(causes))
        parts.append(f"follow the advice below for {groups}")
    return texts.to_do(parts)


def _charts(lags: Sequence[Row]) -> tuple[Figure, ...]:
    shown = [row for row in lags if row["lag"]][:MAX_BARS]
    if not shown:
        return ()
    names = [f"{row['group_id']} of {row['topic']}" for row in shown]
    groups = counted(len(shown), "group and topic", "groups and topics")
    caption = f"Records left, of the {groups} with most"
    return (
        Figure(
            bars(names, {"records left": [row["lag"] for row in shown]}, "records left"), caption
        ),
    )


def _left_out(scope: Scope) -> tuple[str, ...]:
    if scope.has_log:
        return ()
    return (
        "Throttles, limits of fetches, slow brokers and rebalances show in a request log, sampled "
        "or whole: without one they are no cause here.",
    )
