"""That a name is well: how long its requests wait, what is usual, errors, and idle members."""

from collections.abc import Iterator

from quotaflow.pipelines.areas.diagnoses import MEANS, parts
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.areas.versions import ERRORS, error
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.schemas.programs import program_of
from quotaflow.udfs.counted import counted, noun

WAITS = f"""
SELECT
    api,
    sum(timed_requests) AS requests,
    count(DISTINCT concat(principal, ' ', coalesce(client_id, ''))) AS clients,
    sum(waited_time_ms) / sum(timed_requests) AS waited_ms,
    {MEANS.strip()}
    AND ({{is_client}} OR {{is_named_broker}})
    AND event_time >= {{since}} AND event_time < {{until}}
GROUP BY api
ORDER BY sum(waited_time_ms) DESC, api
"""
"""How long requests of a name wait, and on what."""
GROUPS = """
SELECT group_id, count(*) AS members,
    count(CASE WHEN cardinality(assigned_partitions) = 0 THEN 1 END) AS idle_members
FROM current_group_assignments
WHERE {of_cluster}
GROUP BY group_id
HAVING count(
    CASE WHEN cardinality(assigned_partitions) = 0 AND ({is_group} OR {is_client_id}) THEN 1 END
) > 0
"""
"""Groups of a name, or in which a client of it has nothing: all their members, and how many have
nothing."""
LAGS = """
SELECT group_id, sum(lag) AS lag FROM group_lag WHERE {of_cluster} AND {is_group} GROUP BY group_id
"""
_OF_DAY = (
    "FROM request_times WHERE {of_cluster} AND {is_client} AND api = {api} AND timed_requests > 0 "
    "AND event_time >= {day} AND event_time < {until}"
)
CLIENTS = f"SELECT DISTINCT principal, client_id {_OF_DAY} LIMIT {{limit}}"
"""The clients of a name on the last day."""
USUAL = f"""
SELECT max(waited / requests) AS usual_ms
FROM (
    SELECT
        *,
        row_number() OVER (ORDER BY waited / requests, event_time) AS nth,
        count(*) OVER () AS minutes
    FROM (
        SELECT event_time, sum(timed_requests) AS requests, sum(waited_time_ms) AS waited
        {_OF_DAY}
        GROUP BY event_time
    ) AS by_minute
) AS in_order
WHERE nth * 2 <= minutes + 1 AND minutes >= 10
"""
"""The median of the mean waits of the minutes of a day."""


def well(scope: Scope, *, is_diagnosed: bool = True) -> tuple[str, tuple[tuple[str, float], ...]]:
    """That nothing is wrong, with how long requests wait, and their budget in ms.

    Without diagnoses only how long they wait.
    """
    assert scope.about is not None
    subject = scope.about.subject
    name = f"Broker {subject.brokers[0]}" if subject.brokers else texts.listed(subject.name)
    waits = scope.rows_if_made(WAITS)
    more = " ".join(["", *_errors(scope), *_groups(scope)])
    if not waits:
        return f"{name}: nothing is known to be wrong.{more}", ()
    row = waits[0]
    requests = counted(int(row["requests"]), f"{row['api']} request")
    if subject.brokers:
        requests += f" of {counted(row['clients'], 'client')}"
    records = "" if row["api"] == "PRODUCE" else ", besides the time without records"
    waited = f"waited {texts.duration(row['waited_ms'])} on average{records}"
    if not is_diagnosed:
        return f"{name}: {requests} {waited}. Diagnoses are missing.", ()
    usual = "" if subject.brokers else _usual(scope, row)
    return f"{name} is well: {requests} {waited}{usual}.{more}", tuple(parts(row))


def _usual(scope: Scope, row: Row) -> str:
    """What wait is usual for the only client of the name; empty where that is not known."""
    api = literal(row["api"])
    clients = scope.rows(CLIENTS, api=api)
    if len({(each["principal"], program_of(each["client_id"] or "")) for each in clients}) > 1:
        return ""
    (usual,) = scope.rows(USUAL, api=api)
    return "" if usual["usual_ms"] is None else f" (usually {texts.duration(usual['usual_ms'])})"


def _errors(scope: Scope) -> Iterator[str]:
    """Errors that are too few for a symptom, as a sentence."""
    assert scope.about is not None
    subject = scope.about.subject
    # Most errors of clients of a topic are not about the topic.
    is_topic = subject.topics and not (subject.principals or subject.client_ids)
    if rows := [] if is_topic else scope.rows_if_made(ERRORS):
        requests = counted(sum(row["requests"] for row in rows), "request")
        got = "got" if len(rows) == 1 else "got errors, most often"
        yield f"{requests} {got} {error(rows[0])} ({rows[0]['api']})."


def _groups(scope: Scope) -> Iterator[str]:
    """The lag of a group, and members that have no partition, as sentences."""
    assert scope.about is not None
    for row in scope.rows_if_made(LAGS) if scope.about.subject.groups else ():
        if row["lag"] is not None:
            yield f"Its lag is {counted(int(row['lag']), 'record')}."
    for row in scope.rows_if_made(GROUPS):
        members, idle = counted(row["members"], "member"), row["idle_members"]
        group = texts.listed(row["group_id"])
        yield f"{idle} of {members} of {group} {noun(idle, 'has', 'have')} no partition."
