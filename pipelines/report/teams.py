"""The section on teams: what each team's clients moved, stored and cost, by topic."""

from collections.abc import Sequence
from functools import partial

from quotaflow.pipelines.config.cluster import Team
from quotaflow.pipelines.report import texts
from quotaflow.pipelines.report.charts import MAX_BARS, bars
from quotaflow.pipelines.report.scope import Scope
from quotaflow.pipelines.report.section import (
    MAX_ROWS,
    NUMBER,
    Chart,
    GridColumn,
    ReportSection,
    Row,
    grid,
)
from quotaflow.pipelines.warehouse.sql_literals import literal

TITLE = "Cost by team"
_TABLE, _REMOTE, _STORED = "traffic", "remote_reads", "replica_sizes"
_NO_TEAM = "no team"
_MOVED = """
    SELECT
        coalesce({client_team}, {topic_team}) AS team,
        topic,
        CASE WHEN direction = 'produced' THEN bytes END AS produced,
        CASE WHEN direction = 'consumed' THEN bytes END AS consumed,
        cross_rack_bytes,
        unknown_rack_bytes,
        CAST(NULL AS BIGINT) AS remote_bytes,
        CAST(NULL AS BIGINT) AS stored_bytes,
        CAST(NULL AS BIGINT) AS unsized_topics,
        cost,
        currency
    FROM traffic_by_hour
    WHERE cluster_id = {cluster} AND hour >= date_trunc('hour', {since})
"""
_READ = """
    SELECT
        coalesce({client_team}, {topic_team}), topic, NULL, NULL, NULL, NULL, bytes, NULL, NULL,
        remote_read_cost, currency
    FROM remote_reads_by_hour
    WHERE cluster_id = {cluster} AND hour >= date_trunc('hour', {since})
"""
# Snapshots may have sizes of some replicas only: a part of a topic is not its size.
_KEPT = """
    SELECT
        {topic_team}, topic, NULL, NULL, NULL, NULL, NULL,
        CASE WHEN count(size_bytes) = count(*) THEN sum(size_bytes) END,
        CASE WHEN count(size_bytes) = count(*) THEN 0 ELSE 1 END, NULL, NULL
    FROM (
        SELECT replicas.topic, sizes.size_bytes
        FROM current_replicas AS replicas
        LEFT JOIN (
            SELECT
                *,
                row_number() OVER (
                    PARTITION BY topic, partition, broker_id
                    ORDER BY event_time DESC, is_removed, is_future
                ) AS age
            FROM replica_sizes
            WHERE cluster_id = {cluster}
        ) AS sizes
            ON replicas.topic = sizes.topic
                AND replicas.partition = sizes.partition
                AND replicas.broker_id = sizes.broker_id
                AND sizes.age = 1 AND NOT sizes.is_removed
        WHERE replicas.cluster_id = {cluster}
    ) AS logs
    GROUP BY topic
"""
_SUMS = """
    sum(produced) AS produced,
    sum(consumed) AS consumed,
    sum(cross_rack_bytes) AS cross_rack_bytes,
    sum(unknown_rack_bytes) AS unknown_rack_bytes,
    sum(remote_bytes) AS remote_bytes,
    sum(stored_bytes) AS stored_bytes,
    sum(unsized_topics) AS unsized_topics,
    sum(cost) AS cost,
    max(currency) AS currency
"""
_ORDER = "ORDER BY cost DESC NULLS LAST, coalesce(produced, 0) + coalesce(consumed, 0) DESC"


def team_sql(teams: Sequence[Team], **columns: str) -> str:
    """SQL of the first team that owns a name; `columns` are the names' columns by kind of pattern.

    A pattern becomes a LIKE, whose cost is bounded; the text of it is a literal.
    """
    cases = []
    for team in teams:
        tests = [
            f"{column} LIKE {literal(_like(pattern))} ESCAPE '!'"
            for kind, column in columns.items()
            for pattern in getattr(team, kind)
        ]
        if tests:
            cases.append(f"WHEN {' OR '.join(tests)} THEN {literal(team.team)}")
    return f"CASE {' '.join(cases)} END" if cases else "CAST(NULL AS STRING)"


def _like(pattern: str) -> str:
    for special in "!%_":
        pattern = pattern.replace(special, f"!{special}")
    return pattern.replace("*", "%")


def section(scope: Scope) -> ReportSection:
    """Teams and topics by what they cost, else by the bytes that clients moved."""
    first, last = scope.extent(_TABLE)
    if last is None:
        return ReportSection(TITLE, sentences=(scope.nothing(_TABLE),))
    topics = scope.rows(_query(scope, "team, topic", f"LIMIT {MAX_ROWS}"))
    teams = scope.rows(_query(scope, "team", ""))
    return ReportSection(
        TITLE,
        time_range=texts.time_range(first, last),
        sentences=(_sentence(scope, teams),),
        advice=_advice(scope, teams),
        charts=(_chart(teams),),
        grids=(
            grid(
                "Teams and topics, by cost where it is known, else by bytes",
                topics,
                _columns(scope),
                "None.",
            ),
        ),
        left_out=_unknown(scope, teams),
    )


def _query(scope: Scope, keys: str, end: str) -> str:
    parts = [_MOVED]
    parts += [_READ] if scope.reader.is_made(_REMOTE) else []
    parts += [_KEPT] if _has_sizes(scope) else []
    teams = scope.conf.teams
    client = team_sql(teams, principals="principal", clients="client_id")
    union = " UNION ALL ".join(parts).replace("{client_team}", client)
    union = union.replace("{topic_team}", team_sql(teams, topics="topic"))
    sums = f"SELECT {keys}, {_SUMS} FROM ({union}) AS parts GROUP BY {keys}"
    return f"SELECT *, count(*) OVER () AS of_all FROM ({sums}) AS sums {_ORDER}, {keys} {end}"


def _has_sizes(scope: Scope) -> bool:
    return scope.reader.is_made(_STORED) and scope.reader.is_made("replicas")


def _columns(scope: Scope) -> tuple[GridColumn, ...]:
    """The columns; a source without a table is not known, one without a row moved nothing."""
    return (
        GridColumn("team", _team),
        GridColumn("topic", lambda row: texts.listed(row["topic"])),
        _bytes("produced", "produced"),
        _bytes("consumed", "consumed"),
        _bytes("crossed racks", "cross_rack_bytes"),
        _bytes("read from remote storage", "remote_bytes", is_known=scope.reader.is_made(_REMOTE)),
        GridColumn("stored, all replicas", partial(_stored, _has_sizes(scope)), NUMBER),
        GridColumn("cost", lambda row: texts.money(row["cost"], row["currency"]), NUMBER),
    )


def _bytes(head: str, name: str, *, is_known: bool = True) -> GridColumn:
    def show(row: Row) -> str:
        return texts.size((row[name] or 0) if is_known else None)

    return GridColumn(head, show, NUMBER)


def _stored(has_sizes: bool, row: Row) -> str:
    is_known = has_sizes and not row["unsized_topics"]
    return texts.size((row["stored_bytes"] or 0) if is_known else None)


def _team(row: Row) -> str:
    return _NO_TEAM if row["team"] is None else texts.listed(row["team"])


def _sentence(scope: Scope, teams: Sequence[Row]) -> str:
    if not scope.conf.teams:
        return "Conf names no teams (`teams`), so all topics are of no team."
    owned = [_team(row) for row in teams if row["team"] is not None]
    if not owned:
        return "No team of conf owns any of this traffic."
    return (
        f"{texts.count(len(owned), 'team')} in this time, the greatest first: {texts.names(owned)}."
    )


def _advice(scope: Scope, teams: Sequence[Row]) -> str:
    rest = sum(
        (row["produced"] or 0) + (row["consumed"] or 0) for row in teams if row["team"] is None
    )
    if not scope.conf.teams or not rest:
        return "Nothing."
    return f"Name an owner in conf (`teams`) for the {texts.size(rest)} of no team."


def _chart(teams: Sequence[Row]) -> Chart:
    shown = teams[:MAX_BARS]
    series = {way: [row[way] for row in shown] for way in ("produced", "consumed")}
    figure = bars([_team(row) for row in shown], series, "bytes", texts.size)
    return Chart(figure, "What clients of each team produced and consumed")


def _unknown(scope: Scope, teams: Sequence[Row]) -> tuple[str, ...]:
    """Why numbers are not known, and which are least values."""
    sentences = ["Traffic belongs to the team of the client, else to that of the topic."]
    unknown = sum(row["unknown_rack_bytes"] or 0 for row in teams)
    if unknown:
        sentences.append(
            f"Bytes that crossed racks are least values: for {texts.size(unknown)} the rack of one "
            "side is not known."
        )
    if not scope.reader.is_made(_REMOTE):
        sentences.append("Reads from remote storage are not known: no job wrote remote_reads yet.")
    if not _has_sizes(scope) or any(row["unsized_topics"] for row in teams):
        sentences.append(
            "Stored bytes are known of topics for which snapshots have the size of every replica."
        )
    if all(row["cost"] is None for row in teams):
        sentences.append("No cost is known: no snapshot has a price of conf (`prices`).")
    return tuple(sentences)
