"""What quotaflow wrote to the cluster and gave back, and how that ended."""

from collections.abc import Sequence

from quotaflow.pipelines.report import texts
from quotaflow.pipelines.report.planned import entity
from quotaflow.pipelines.report.scope import Scope
from quotaflow.pipelines.report.section import (
    MOST_ROWS,
    NOW,
    TIME,
    Alarm,
    Column,
    Row,
    Section,
    grid,
    moment,
    text,
)

TITLE = "Changes that were made"
_TABLE = "config_changes"
_ENDS = f"""
SELECT *, count(*) OVER () AS of_all, min(event_time) OVER () AS first
FROM {_TABLE}
WHERE cluster_id = {{cluster}} AND event_time >= {{since}} AND step <> 'begun'
ORDER BY event_time DESC, number DESC
LIMIT {MOST_ROWS}
"""
_OPEN = f"""
SELECT begun.*, count(*) OVER () AS of_all
FROM {_TABLE} AS begun
LEFT JOIN {_TABLE} AS ended
    ON begun.run_id = ended.run_id AND begun.change_id = ended.change_id
        AND begun.purpose = ended.purpose AND ended.step <> 'begun'
WHERE begun.cluster_id = {{cluster}} AND begun.step = 'begun' AND ended.step IS NULL
ORDER BY begun.event_time DESC, begun.number
LIMIT {MOST_ROWS}
"""


def _until(row: Row) -> str:
    return "" if row["expires_at"] is None else texts.moment(row["expires_at"])


def _change(row: Row) -> str:
    prior, value = (
        "not set" if row[name] is None else texts.listed(row[name], 80)
        for name in ("prior_value", "config_value")
    )
    return f"{prior} → {value}"


_MADE = (
    moment("at (UTC)", "event_time"),
    Column("whose", entity),
    text("config", "config_key"),
    Column("change", _change),
    Column("ended", lambda row: f"{row['purpose']}: {row['step']}"),
    Column("holds until (UTC)", _until, TIME),
    text("why", "reason", 160),
)
_BEGUN = (moment("at (UTC)", "event_time"), Column("whose", entity), text("config", "config_key"))


def section(scope: Scope) -> Section:
    """Ends of changes, the newest first, and changes that have none."""
    ends, open_ones = scope.rows(_ENDS), scope.rows(_OPEN)
    if not ends and not open_ones:
        return Section(TITLE, sentences=("Nothing was written to the cluster in this time.",))
    times = [row["event_time"] for row in ends]
    return Section(
        TITLE,
        span=texts.span(ends[0]["first"], times[0]) if ends else "",
        sentences=(_ended(ends), _unended(open_ones)),
        advice="`quotaflow restore` says what would be given back, `--yes` does it; what expires "
        "is given back by the next `quotaflow restore --yes`.",
        grids=(
            grid("Changes by their end, the newest first", ends, _MADE, "None ended."),
            grid("Changes without an end", open_ones, _BEGUN, "Every change has its end."),
        ),
        left_out=("Before each end there is a step `begun` in config_changes.",),
        alarms=_alarms(open_ones),
    )


def _ended(ends: Sequence[Row]) -> str:
    if not ends:
        return "No change came to an end."
    done = texts.names(row["step"] for row in ends)
    return f"{texts.count(ends[0]['of_all'], 'change')} came to an end: {done}."


def _unended(open_ones: Sequence[Row]) -> str:
    if not open_ones:
        return ""
    return f"Changes without an end, because a run was cut off: {open_ones[0]['of_all']:,}."


def _alarms(open_ones: Sequence[Row]) -> tuple[Alarm, ...]:
    if not open_ones:
        return ()
    said = f"{_unended(open_ones)} The next `quotaflow apply` or `restore` looks at the cluster."
    return (Alarm(NOW, said),)
