"""The section on replication throttles and moves of replicas (KIP-73)."""

from collections.abc import Sequence

from quotaflow.pipelines.areas import texts
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report import snapshots
from quotaflow.pipelines.report.charts import MAX_SERIES, TimelineEvent, by_name, lines, timeline
from quotaflow.pipelines.report.section import (
    BROKER,
    MAX_ROWS,
    MOVE,
    NOW,
    NUMBER,
    SOON,
    Alarm,
    Chart,
    GridColumn,
    ReportSection,
    Row,
    grid,
    moment,
    number,
    text,
)
from quotaflow.udfs.counted import counted

TITLE = "Replication throttles and moves"
_TABLE, _THROTTLES = "replication_rates", "replication_throttles"
_MAX_EVENTS, _MAX_LANES = 200, 12
_CHECKS = f"""
SELECT *, count(*) OVER () AS of_all
FROM throttle_checks
WHERE cluster_id = {{cluster}}
ORDER BY finding, topic, side, broker_id
LIMIT {MAX_ROWS}
"""
_MOVES = f"""
SELECT *, count(*) OVER () AS of_all, count(CASE WHEN state = 'done' THEN 1 END) OVER () AS done
FROM reassignments
WHERE cluster_id = {{cluster}} AND state <> 'in_place'
    AND (requested_time >= {{since}} OR state NOT IN ('done', 'cancelled'))
ORDER BY
    CASE state WHEN 'never_converges' THEN 0 WHEN 'stuck' THEN 1 WHEN 'moving' THEN 2
        WHEN 'waiting' THEN 3 ELSE 4 END,
    requested_time DESC, topic, partition, replica_id
LIMIT {MAX_ROWS}
"""
_TIMELINE = f"""
SELECT *, count(*) OVER () AS of_all
FROM throttle_timeline
WHERE cluster_id = {{cluster}} AND event_time >= {{since}}
ORDER BY event_time DESC, entity_type, entity_name, config_key, partition
LIMIT {_MAX_EVENTS}
"""
_RATES = f"""
WITH ranked AS (
    SELECT broker_id, side,
        row_number() OVER (ORDER BY max(throttled_rate) DESC, broker_id, side) AS nth
    FROM {_TABLE}
    WHERE cluster_id = {{cluster}} AND event_time >= {{since}}
    GROUP BY broker_id, side
)
SELECT
    concat('broker ', CAST(rates.broker_id AS STRING), ' as ', rates.side) AS name,
    epoch_us(rates.event_time) // 1000000 // {{step}} * {{step}} AS second,
    max(rates.throttled_rate) / 1e6 AS rate
FROM {_TABLE} AS rates
INNER JOIN ranked
    ON rates.broker_id = ranked.broker_id AND rates.side = ranked.side
        AND ranked.nth <= {MAX_SERIES}
WHERE cluster_id = {{cluster}} AND event_time >= {{since}}
GROUP BY 1, 2, ranked.nth
ORDER BY ranked.nth, second
"""
_QUOTAS = f"""
SELECT DISTINCT quota / 1e6 AS quota
FROM {_TABLE}
WHERE cluster_id = {{cluster}} AND event_time >= {{since}} AND quota IS NOT NULL
LIMIT 2
"""
_WRONG = {"never_converges", "stuck"}
CHECKED = (
    text("what is wrong", "finding"),
    text("topic", "topic"),
    text("side", "side"),
    text("broker", "broker_id"),
    number("rate", "rate", texts.rate),
    number("for", "age_s", lambda age_s: texts.duration(age_s and age_s * 1e3)),
    text("set by", "set_by"),
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
    text("state", "state"),
    GridColumn("left", _left, NUMBER),
    number("pace", "bytes_per_s", texts.rate),
    GridColumn("time left", _eta, NUMBER),
    text("asked for by", "requested_by"),
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


def section(scope: Scope) -> ReportSection:
    """Current throttles, moves, and the steps of both."""
    if not scope.has_log:
        return snapshots.replication(scope, TITLE, scope.nothing(_THROTTLES))
    checks, moves, steps = (scope.rows(sql) for sql in (_CHECKS, _MOVES, _TIMELINE))
    rates = _rates(scope)
    if not checks and not moves and not steps and not rates:
        sentence = "Nothing was moved or throttled: no request did that, and no list has a replica."
        return ReportSection(
            TITLE, time_range=_since(scope), sentences=(sentence,), advice="Nothing."
        )
    return ReportSection(
        TITLE,
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
        left_out=(_cut(steps),) if steps else (),
        alarms=tuple(_alarms(checks, moves)),
    )


def _advice(checks: Sequence[Row], moves: Sequence[Row]) -> str:
    """What to do; each part has rows that call for it."""
    parts = []
    wrong = [row for row in moves if row["state"] in _WRONG]
    if wrong:
        topics = texts.names(row["topic"] for row in wrong)
        parts.append(f"raise the throttle of {topics} or move less at once")
    if any(row["finding"].startswith("stale_") for row in checks):
        parts.append("`quotaflow plan` says which left-over lists and rates it takes back")
    others = [row["finding"] for row in checks if not row["finding"].startswith("stale_")]
    if others:
        parts.append(f"see what docs/replication.md says of {texts.names(others)}")
    return texts.to_do(parts)


def _since(scope: Scope) -> str:
    return texts.time_range(scope.since, scope.until)


def _moves(moves: Sequence[Row]) -> str:
    if not moves:
        return "No replica was moved."
    total = counted(moves[0]["of_all"], "move")
    return f"{total} of replicas: {moves[0]['done']:,} done."


def _checks(checks: Sequence[Row]) -> str:
    if not checks:
        return "Nothing is wrong with current throttles."
    findings = texts.names(row["finding"] for row in checks)
    return f"{counted(checks[0]['of_all'], 'finding')} about current throttles: {findings}."


def _rates(scope: Scope) -> tuple[Chart, ...]:
    step_s, rates = scope.steps(_TABLE, _RATES)
    series = by_name(rates, "name", "rate")
    if not series:
        return ()
    quotas = scope.rows(_QUOTAS)
    limit = ("rate of the throttles", quotas[0]["quota"]) if len(quotas) == 1 else None
    caption = "Throttled replication in MB/s, as brokers measure it: the highest in steps of "
    return (Chart(lines(series, "MB/s", step_s, limit), caption + texts.duration(step_s * 1e3)),)


def _steps(steps: Sequence[Row]) -> tuple[Chart, ...]:
    lanes = list(dict.fromkeys(_lane(row) for row in steps))[:_MAX_LANES]
    events = [_event(row) for row in reversed(steps) if _lane(row) in lanes]
    caption = f"Who altered throttles and moves when: the {len(lanes)} last altered"
    return (Chart(timeline(events), caption),) if events else ()


def _event(row: Row) -> TimelineEvent:
    kind = "reassignment" if row["config_key"] == "reassignment" else "throttle"
    refused = "" if row["is_done"] else ", refused"
    principal = texts.listed(row["principal"])
    words = f"{row['config_key']} {row['change']} {texts.listed(row['value'] or '')} by {principal}"
    return TimelineEvent(
        row["event_time"], _lane(row), f"{kind} {row['change'].lower()}{refused}", words
    )


def _cut(steps: Sequence[Row]) -> str:
    every = counted(steps[0]["of_all"], "step")
    return f"The chart has the last {len(steps):,} of {every}, in {_MAX_LANES} lanes at most."


def _alarms(checks: Sequence[Row], moves: Sequence[Row]) -> list[Alarm]:
    alarms = []
    wrong = [row for row in moves if row["state"] in _WRONG]
    if wrong:
        what = texts.names(f"{row['topic']}-{row['partition']}" for row in wrong)
        alarms.append(Alarm(NOW, f"Moves that do not come to an end: {what}."))
    if checks:
        others = [check for check in checks if not check["finding"].startswith("stale_")]
        alarms.append(Alarm(SOON, _checks(checks), _advice(others or checks, ())))
    return alarms
