"""The section on replication throttles and moves of replicas (KIP-73)."""

from collections.abc import Iterator, Sequence

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.finding import in_cluster
from quotaflow.pipelines.areas.names import BROKER, MOVE
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.replication import (
    MOVE_STATES,
    MOVES,
    PROBLEMS,
    RATES,
    STUCK,
    THROTTLE_RATES,
    THROTTLE_WRONG,
    TIMELINE,
    check_steps,
)
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report import snapshots
from quotaflow.pipelines.report.charts import TimelineEvent, timeline
from quotaflow.pipelines.report.plots import MAX_SERIES, by_name, lines
from quotaflow.pipelines.report.section import (
    NUMBER,
    Figure,
    GridColumn,
    ReportSection,
    grid,
    moment,
    nothing,
    number,
    seconds,
    section_of,
    text,
)
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted

TITLE = "Replication throttles and moves"
_TABLE, _THROTTLES = "replication_rates", "replication_throttles"
_MAX_EVENTS, _MAX_LANES = 200, 12
_CHARS = 200
CHECKED = (
    GridColumn("what is wrong", reasons.throttle_fault),
    text("topic", "topic"),
    text("side", "side"),
    text("broker", "broker_id"),
    number("rate", "rate", texts.rate),
    seconds("for", "age_s"),
    text("set by", "set_by"),
    GridColumn("what to do", lambda row: texts.listed(reasons.throttle_step(row) or "", _CHARS)),
)


def _lane(row: Row) -> str:
    name = "all" if row["entity_name"] == "" else texts.listed(row["entity_name"])
    partition = "" if row["partition"] is None else f"-{row['partition']}"
    return f"{row['entity_type']} {name}{partition}"


def _left(row: Row) -> str:
    return "" if row["bytes_left"] is None else texts.size(row["bytes_left"])


def _eta(row: Row) -> str:
    if row["eta_s"] is None:
        return ""
    error = row["eta_error_s"]
    about = "" if error is None else f" ± {texts.duration(error * 1e3)}"
    return texts.duration(row["eta_s"] * 1e3) + about


MOVED = (
    GridColumn(
        "partition",
        lambda row: f"{texts.listed(row['topic'])}-{row['partition']}",
        page_kind=MOVE,
    ),
    GridColumn("to broker", lambda row: texts.listed(row["replica_id"]), page_kind=BROKER),
    text("copied from", "leader_id"),
    GridColumn("state", lambda row: MOVE_STATES.get(row["state"], texts.listed(row["state"]))),
    GridColumn("left", _left, NUMBER),
    number("pace", "bytes_per_s", texts.rate),
    GridColumn("time left", _eta, NUMBER),
    text("requested by", "requested_by"),
    moment("at (UTC)", "requested_time"),
)
ALTERED = (
    moment("at (UTC)", "event_time"),
    GridColumn("what", _lane),
    text("config", "config_key"),
    GridColumn("change", lambda row: f"{row['change']} {texts.listed(row['value'] or '')}"),
    text("by", "principal"),
    GridColumn("taken", lambda row: "yes" if row["is_done"] else "no"),
)
"""Columns of lists: of what is wrong with throttles, of moves, and of what was altered."""


@section_of(TITLE)
def section(scope: Scope) -> ReportSection:
    """Current throttles, moves, and the steps of both."""
    if not scope.has_log:
        return snapshots.replication(scope, nothing(scope, _THROTTLES))
    checks, moves = scope.ask(THROTTLE_WRONG.question), scope.ask(MOVES)
    steps = scope.rows(TIMELINE.counted_rows, limit=str(_MAX_EVENTS))
    rates = _rates(scope)
    alarms = tuple(in_cluster(scope, PROBLEMS))
    if not checks and not moves and not steps and not rates:
        sentence = "Nothing was moved or throttled: no request did that, and no list has a replica."
        return ReportSection(
            time_range=_since(scope),
            sentences=(sentence,),
            advice=texts.NO_STEP,
            alarms=alarms,
        )
    return ReportSection(
        time_range=_since(scope),
        sentences=(_moves(moves), _checks(checks)),
        advice=_advice(checks, moves),
        charts=(*rates, *_steps(steps)),
        grids=(
            grid(
                "What is wrong with current throttles",
                checks,
                CHECKED,
                "Nothing is wrong.",
            ),
            grid("Moves of replicas, the troubled first", moves, MOVED, "Nothing was moved."),
            grid("Steps, the newest first", steps, ALTERED, "Nobody altered a throttle."),
        ),
        left_out=tuple(_cut(steps)),
        alarms=alarms,
    )


def _advice(checks: Sequence[Row], moves: Sequence[Row]) -> str:
    """What to do; each part has rows that call for it."""
    parts = []
    wrong = [row for row in moves if row["state"] in STUCK]
    if wrong:
        topics = texts.names(row["topic"] for row in wrong)
        parts.append(f"raise the throttle of {topics} or move less at once")
    return texts.to_do([*parts, *check_steps(checks)])


def _since(scope: Scope) -> str:
    return texts.time_range(scope.since, scope.until)


def _moves(moves: Sequence[Row]) -> str:
    if not moves:
        return "No replica was moved."
    total, done = counted(moves[0]["of_all"], "replica was", "replicas were"), moves[0]["done"]
    if not done:
        return f"{total} to move; no move is done."
    return f"{total} to move; {counted(done, 'move is', 'moves are')} done."


def _checks(checks: Sequence[Row]) -> str:
    if not checks:
        return "Nothing is wrong with current throttles."
    return THROTTLE_WRONG.summary(checks)


def _rates(scope: Scope) -> tuple[Figure, ...]:
    step_s, rates = scope.steps(_TABLE, RATES, series=str(MAX_SERIES))
    series = by_name(rates, "name", "rate")
    if not series:
        return ()
    quotas = scope.rows(THROTTLE_RATES)
    limit = ("rate of the throttles", quotas[0]["quota"]) if len(quotas) == 1 else None
    caption = "Throttled replication in MB/s, as brokers measure it: the highest in steps of "
    return (Figure(lines(series, "MB/s", step_s, limit), caption + texts.duration(step_s * 1e3)),)


def _steps(steps: Sequence[Row]) -> tuple[Figure, ...]:
    lanes = list(dict.fromkeys(_lane(row) for row in steps))[:_MAX_LANES]
    events = [_event(row) for row in reversed(steps) if _lane(row) in lanes]
    caption = f"Who altered throttles and moves when: the {len(lanes)} last altered"
    return (Figure(timeline(events), caption),) if events else ()


def _event(row: Row) -> TimelineEvent:
    kind = "reassignment" if row["config_key"] == "reassignment" else "throttle"
    refused = "" if row["is_done"] else ", refused"
    principal = texts.listed(row["principal"])
    words = f"{row['config_key']} {row['change']} {texts.listed(row['value'] or '')} by {principal}"
    return TimelineEvent(
        row["event_time"], _lane(row), f"{kind} {row['change'].lower()}{refused}", words
    )


def _cut(steps: Sequence[Row]) -> Iterator[str]:
    if steps and len(steps) < steps[0]["of_all"]:
        yield f"The chart has the last {len(steps):,} of {steps[0]['of_all']:,} steps."
