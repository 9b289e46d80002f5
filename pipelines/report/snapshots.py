"""What sections show from snapshots alone, where the request log that they need has no rows."""

from collections.abc import Sequence

from quotaflow.pipelines.areas.finding import in_cluster
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.quotas import SET
from quotaflow.pipelines.areas.replication import OF_SNAPSHOTS, ONGOING, THROTTLE_LEFT
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report.section import (
    NUMBER,
    GridColumn,
    ReportSection,
    code,
    grid,
    moment,
    number,
    seconds,
    text,
)
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted

_PARTS = (("user", "is_default_user"), ("client_id", "is_default_client_id"))
_IP = (("ip", "is_default_ip"),)


def _part(row: Row, name: str, is_default: str) -> str:
    kind = name.replace("_", " ")
    if row[is_default]:
        return f"every other {kind}"
    return "" if row[name] is None else f"{kind} {texts.listed(row[name])}"


def _entity(row: Row) -> str:
    return ", ".join(filter(None, (_part(row, *part) for part in (*_PARTS, *_IP))))


def _limit(row: Row) -> str:
    is_bytes = row["config_key"].endswith("byte_rate")
    return texts.rate(row["quota"]) if is_bytes else texts.number(row["quota"])


_QUOTA_COLUMNS = (
    GridColumn("who shares it", _entity),
    text("quota", "config_key"),
    GridColumn("limit", _limit, NUMBER),
    text("set by", "set_by"),
    moment("seen since (UTC)", "valid_from"),
)
_MOVE_COLUMNS = (
    GridColumn("partition", lambda row: f"{texts.listed(row['topic'])}-{row['partition']}"),
    text("to broker", "replica_id"),
    text("state", "state"),
    number("has", "size_bytes", texts.size),
    number("left", "bytes_left", texts.size),
    number("pace", "bytes_per_s", texts.rate),
    seconds("time left", "eta_s"),
    moment("seen since (UTC)", "first_seen_at"),
)
_LEFTOVER_COLUMNS = (
    code("what", "throttle_checks", "finding"),
    text("of", "entity_type"),
    text("name", "entity_name"),
    text("config", "config_key"),
    text("value", "config_value"),
    seconds("for", "age_s"),
)


def quotas(scope: Scope, missing: str) -> ReportSection:
    """The client quotas that are set. How full they are only a request log shows."""
    rows = scope.ask_if_made(SET)
    if not rows:
        return ReportSection(sentences=(missing,))
    return ReportSection(
        time_range="as of the last snapshot",
        sentences=(f"{counted(rows[0]['of_all'], 'client quota')} set.",),
        advice=texts.NO_STEP,
        grids=(grid("Client quotas that are set", rows, _QUOTA_COLUMNS, "None."),),
        left_out=(f"How full they are, and whom they throttle: {missing}",),
    )


def replication(scope: Scope, missing: str) -> ReportSection:
    """Ongoing moves and left-over throttles, as snapshots see them."""
    if not scope.reader.is_made("moving_replicas"):
        return ReportSection(sentences=(missing,))
    moves, leftovers = scope.ask_if_made(ONGOING), scope.ask_if_made(THROTTLE_LEFT.question)
    return ReportSection(
        time_range="as of the last snapshot",
        sentences=(_moving(moves), _left(leftovers)),
        advice=_advice(moves, leftovers),
        grids=(
            grid("Replicas that move, stalled ones first", moves, _MOVE_COLUMNS, "None."),
            grid("Throttles that are left over", leftovers, _LEFTOVER_COLUMNS, "None."),
        ),
        left_out=(f"Who moved and throttled, and what happens between two snapshots: {missing}",),
        alarms=tuple(in_cluster(scope, OF_SNAPSHOTS)),
    )


def _moving(moves: Sequence[Row]) -> str:
    if not moves:
        return "No reassignment was going on at the last snapshot."
    total = counted(moves[0]["of_all"], "replica")
    return f"{total} being moved; {moves[0]['stalled']:,} did not grow since the snapshot before."


def _left(leftovers: Sequence[Row]) -> str:
    if not leftovers:
        return "No replication throttle is known to be left over."
    return THROTTLE_LEFT.summary(leftovers)


def _advice(moves: Sequence[Row], leftovers: Sequence[Row]) -> str:
    parts = []
    if moves and moves[0]["stalled"]:
        parts.append("see whether brokers of stalled moves are up, and what throttles them")
    if leftovers:
        names = texts.names(row["entity_name"] for row in leftovers)
        parts.append(f"remove what is left over at {names}, if nobody needs it any more")
    return texts.to_do(parts)
