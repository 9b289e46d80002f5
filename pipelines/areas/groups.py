"""Groups that lag: how far, and the causes with their evidence."""

from collections.abc import Iterator

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.finding import FACT, PROBLEM, Finding, Row, amount, last_day
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.reasons.wording import name
from quotaflow.udfs.counted import noun
from quotaflow.udfs.rules.lag_cause import UNKNOWN

NAME = "groups"
TABLES = ("why_groups_lag", "group_members")

_CAUSES = (
    "SELECT * FROM why_groups_lag WHERE {of_cluster} AND ({is_group} OR {is_named_topic}"
    "%s) ORDER BY lag DESC NULLS LAST, group_id, topic, rank"
    " LIMIT {limit}"
)
_OF_CLIENTS = (
    " OR group_id IN (SELECT group_id FROM group_members "
    "WHERE {of_cluster} AND {is_client} AND event_time >= {day})"
)


def findings(scope: Scope) -> Iterator[Finding]:
    """Each cause of each group that is named, that reads a named topic, or has the client."""
    if not scope.is_recent:
        yield last_day("why_groups_lag")
        return
    of_clients = _OF_CLIENTS if scope.reader.is_made("group_members") else ""
    for row in scope.rows(_CAUSES % of_clients):
        yield Finding(
            text=f"{_lag(row)}. Cause {row['rank']}: {reasons.lag_cause(row)}.",
            state=FACT if row["rank"] > 1 or row["cause"] == UNKNOWN else PROBLEM,
            next_step=reasons.lag_step(row),
            evidence_table="why_groups_lag",
            evidence=row,
        )


def _lag(row: Row) -> str:
    age = "" if row["lag_s"] is None else f", the oldest {amount(row['lag_s'])} s old"
    caught = row["caught_up_in_s"]
    until = "" if caught is None else f", caught up in {amount(caught)} s"
    lag = amount(row["lag"])
    left = f"{lag} {noun(lag, 'record')} left{age}, {row['trend'].replace('_', ' ')}{until}"
    return f"{name(row, 'group_id')} reading {name(row, 'topic')}: {left}"
