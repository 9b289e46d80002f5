"""The section on teams: what each team's clients moved, what its topics keep, and the cost."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from quotaflow.pipelines.config.cluster import Team
from quotaflow.pipelines.report import texts
from quotaflow.pipelines.report.charts import MAX_BARS, bars
from quotaflow.pipelines.report.costs import Costs
from quotaflow.pipelines.report.scope import Scope
from quotaflow.pipelines.report.section import (
    MAX_ROWS,
    NUMBER,
    Chart,
    Grid,
    GridColumn,
    ReportSection,
    Row,
    grid,
)
from quotaflow.pipelines.warehouse.cost_items import ITEMS
from quotaflow.pipelines.warehouse.sql_literals import literal

TITLE = "Cost by team"
_TRAFFIC, _REMOTE = "traffic", "remote_reads"
_NO_TEAM = "no team"


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
    costs = Costs.of_scope(scope)
    hours = costs.hours()
    if hours["last"] is None:
        return ReportSection(TITLE, sentences=(scope.nothing(_TRAFFIC),))
    owners = scope.conf.teams
    client = team_sql(owners, principals="principal", clients="client_id")
    of_topic = team_sql(owners, topics="topic")
    teams = costs.owned(["team"], client, of_topic)
    topics = costs.owned(["team", "topic"], client, of_topic)
    known_hours = costs.known_hours()
    return ReportSection(
        TITLE,
        time_range=texts.time_range(hours["first"], hours["last"] + timedelta(hours=1)),
        sentences=(_sentence(scope, teams),),
        advice=_advice(scope, teams),
        charts=(_chart(teams),),
        grids=(_costs(teams), _amounts(scope, topics, known_hours)),
        left_out=_unknown(scope, teams, known_hours),
    )


def _costs(teams: Sequence[Row]) -> Grid:
    """What each team pays for each item, and in all."""
    items = (_money(words, f"{item}_cost") for item, words in ITEMS.items())
    columns = (GridColumn("team", _team), *items, _money("cost", "cost"))
    return grid("Teams, by cost where it is known, else by bytes", teams[:MAX_ROWS], columns, "")


def _amounts(scope: Scope, topics: Sequence[Row], known_hours: float | None) -> Grid:
    """What each topic of a team moved and keeps; a source without a table is not known."""
    is_remote_known = scope.reader.is_made(_REMOTE)
    columns = (
        GridColumn("team", _team),
        GridColumn("topic", lambda row: texts.listed(row["topic"])),
        _bytes("produced", "produced"),
        _bytes("consumed", "consumed"),
        _bytes("crossed racks", "cross_rack_bytes"),
        _bytes("read from remote storage", "remote_bytes", is_known=is_remote_known),
        GridColumn("stored on average, all replicas", partial(_stored, known_hours), NUMBER),
        _money("storage cost", "stored_cost"),
        _money("cost", "cost"),
    )
    caption = "Teams and topics, by cost where it is known, else by bytes"
    return grid(caption, topics[:MAX_ROWS], columns, "")


def _money(head: str, name: str) -> GridColumn:
    return GridColumn(head, lambda row: texts.money(row[name], row["currency"]), NUMBER)


def _bytes(head: str, name: str, *, is_known: bool = True) -> GridColumn:
    def show(row: Row) -> str:
        return texts.size((row[name] or 0) if is_known else None)

    return GridColumn(head, show, NUMBER)


def _stored(known_hours: float | None, row: Row) -> str:
    """The average over all known time: a topic that was there for a part of it has less."""
    if not known_hours or row["unsized_topics"]:
        return texts.size(None)
    return texts.size((row["byte_hours"] or 0) / known_hours)


def _team(row: Row) -> str:
    return _NO_TEAM if row["team"] is None else texts.listed(row["team"])


def _sentence(scope: Scope, teams: Sequence[Row]) -> str:
    if not scope.conf.teams:
        return "Conf names no teams (`teams`), so all topics are of no team."
    owned = [_team(row) for row in teams if row["team"] is not None]
    if not owned:
        return "No team of conf owns any of this."
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


def _unknown(scope: Scope, teams: Sequence[Row], known_hours: float | None) -> tuple[str, ...]:
    """Why numbers are not known, and which are least values."""
    sentences = [
        "Traffic belongs to the team of the client, else to that of the topic; stored bytes belong "
        "to that of the topic."
    ]
    unknown = sum(row["unknown_rack_bytes"] or 0 for row in teams)
    if unknown:
        sentences.append(
            f"Bytes that crossed racks are least values: for {texts.size(unknown)} the rack of one "
            "side is not known."
        )
    if not scope.reader.is_made(_REMOTE):
        sentences.append("Reads from remote storage are not known: no job wrote remote_reads yet.")
    sentences += _unknown_storage(teams, known_hours)
    if all(row["cost"] is None for row in teams):
        sentences.append("No cost is known: no snapshot has a price of conf (`prices`).")
    return tuple(sentences)


def _unknown_storage(teams: Sequence[Row], known_hours: float | None) -> list[str]:
    if not known_hours:
        return [
            "Stored bytes are not known: that needs two snapshots at most two hours apart "
            "(`quotaflow snapshot`)."
        ]
    time = texts.duration(known_hours * 3.6e6)
    sentences = [f"Stored bytes and their cost are those of the {time} between snapshots."]
    unsized = sum(row["unsized_topics"] for row in teams)
    if unsized:
        sentences.append(
            f"Storage costs are least values: for {texts.count(unsized, 'topic')} an hour has a "
            "replica without a size, and no cost (`quotaflow show storage_by_hour`)."
        )
    return sentences
