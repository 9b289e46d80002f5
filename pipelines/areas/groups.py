"""Groups that lag: how far, and the causes with their evidence."""

from collections.abc import Iterator, Sequence

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.finding import NOW, SOON, Finding, RowProblem, amount, last_day
from quotaflow.pipelines.areas.question import Question, Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.reasons.wording import name
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import noun

NAME = "groups"
TABLES = ("why_groups_lag", "group_members")

CAUSES = Question(
    "SELECT * FROM why_groups_lag WHERE {of_cluster} AND {is_own_group}",
    "lag DESC NULLS LAST, group_id, topic, rank",
)
"""Why groups lag by more than a minute, the surest cause first."""
POSITIONS = Question(
    "SELECT * FROM group_lag WHERE {of_cluster}", "lag DESC NULLS LAST, group_id, topic, partition"
)
"""Positions of groups, by partition."""
MEMBERS = Question(
    "SELECT * FROM group_membership WHERE {of_cluster}", "last_seen DESC NULLS LAST, member_id"
)
"""Members of groups, the newest first."""
LAGS = Question(
    """
SELECT
    cluster_id,
    group_id,
    topic,
    max(group_type) AS group_type,
    sum(lag) AS lag,
    CASE WHEN count(CASE WHEN lag > 0 AND lag_s IS NULL THEN 1 END) = 0 THEN max(lag_s) END
        AS lag_s,
    sum(records_in_per_s) AS records_in_per_s,
    sum(records_out_per_s) AS records_out_per_s,
    max(caught_up_in_s) AS caught_up_in_s,
    count(*) AS partitions,
    sum(CASE WHEN members = 0 THEN 1 ELSE 0 END) AS unread_partitions
FROM group_lag
WHERE {of_cluster} AND {is_own_group} AND {within:position_known_at}
GROUP BY cluster_id, group_id, topic
""",
    "lag DESC NULLS LAST, group_id, topic",
)
"""How far groups are behind, by topic."""


def first_causes(causes: Sequence[Row]) -> list[Row]:
    """The surest cause of each lag."""
    return [row for row in causes if row["rank"] == 1]


def _summary(how: str, rows: Sequence[Row]) -> str:
    first, code = rows[0]["group_id"], rows[0]["cause"]
    why = reasons.text_of_code(("why_groups_lag", "cause"), code)
    others = texts.names(row["group_id"] for row in rows if row["group_id"] != first)
    more = f" The lag of {others} also {how}." if others else ""
    return f"The lag of {texts.listed(first)} {how}: {why}.{more}"


FALLS_BEHIND = RowProblem(
    code="group_falls_behind",
    severity=NOW,
    subjects="groups that fall behind",
    subject=("group_id", "topic"),
    table="why_groups_lag",
    question=CAUSES.where("rank = 1 AND trend IN ('growing', 'blocked')"),
    summary=lambda rows: _summary("grows", rows),
)
BEHIND = RowProblem(
    code="group_behind",
    severity=SOON,
    subjects="groups that are behind",
    subject=("group_id", "topic"),
    table="why_groups_lag",
    question=CAUSES.where("rank = 1 AND trend IN ('steady', 'went_back', 'unknown')"),
    summary=lambda rows: _summary("stays", rows),
)
PROBLEMS = (FALLS_BEHIND, BEHIND)
_BY_TREND = {
    "growing": FALLS_BEHIND,
    "blocked": FALLS_BEHIND,
    "steady": BEHIND,
    "went_back": BEHIND,
    "unknown": BEHIND,
}


def findings(scope: Scope) -> Iterator[Finding]:
    """Each cause of each group that is named, that reads a named topic, or has the client.

    A group that catches up is no problem.
    """
    if not scope.is_recent:
        yield last_day("why_groups_lag")
        return
    for row in scope.ask(CAUSES):
        yield Finding(
            text=f"{_lag(row)}. {_cause(row)}",
            problem=_BY_TREND.get(row["trend"]) if row["rank"] == 1 else None,
            next_step=reasons.lag_step(row),
            evidence_table="why_groups_lag",
            evidence=row,
        )


def _cause(row: Row) -> str:
    """The cause as a sentence; an unknown one has no rank."""
    cause = reasons.lag_cause(row)
    is_known = row["confidence"] is not None
    return f"Cause {row['rank']}: {cause}." if is_known else texts.step(cause)


def _lag(row: Row) -> str:
    oldest = row["lag_s"]
    age = "" if oldest is None else f", the oldest {texts.duration(oldest * 1e3)} old"
    age += _deleted(row["retention_left_s"])
    caught = row["caught_up_in_s"]
    until = (
        "" if caught is None else f", and the group catches up in {texts.duration(caught * 1e3)}"
    )
    lag = amount(row["lag"])
    trend = _TRENDS.get(row["trend"], row["trend"])
    behind = f"{lag} {noun(lag, 'record')} behind in {name(row, 'topic')}"
    return f"Group {name(row, 'group_id')} is {behind}{age}; {trend}{until}"


def _deleted(left_s: float | None) -> str:
    """When retention deletes the oldest record, if that is soon."""
    if left_s is None or left_s >= _SOON_S:
        return ""
    when = f"in {texts.duration(left_s * 1e3)}" if left_s > 0 else "now"
    return f" (retention may delete it {when})"


_SOON_S = 86_400
_TRENDS = {
    "growing": "the lag grows",
    "blocked": "the group reads nothing",
    "shrinking": "the lag shrinks",
    "steady": "the lag is steady",
    "went_back": "the group went back to earlier offsets",
    "unknown": "whether the lag grows is not known",
}
