"""The section on teams: what each team's clients moved, what its topics keep, and the cost."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from quotaflow.pipelines.areas.costs import ITEMS, costs_of
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report.charts import MAX_BARS, bars
from quotaflow.pipelines.report.section import (
    NUMBER,
    Figure,
    Grid,
    GridColumn,
    ReportSection,
    grid,
    nothing,
    section_of,
)
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted

TITLE = "Cost by team"
_TRAFFIC, _REMOTE = "traffic", "remote_reads"
_NO_TEAM = "no team"


@section_of(TITLE)
def section(scope: Scope) -> ReportSection:
    """Teams and topics by what they cost, else by the bytes that clients moved."""
    costs = costs_of(scope)
    if costs.total["last_hour"] is None:
        return ReportSection(sentences=(nothing(scope, _TRAFFIC),))
    teams, known_s = costs.teams, costs.total["known_s"]
    return ReportSection(
        time_range=texts.time_range(
            costs.total["first_hour"], costs.total["last_hour"] + timedelta(hours=1)
        ),
        sentences=(_sentence(scope, teams),),
        advice=_advice(scope, teams),
        charts=(_chart(teams),),
        grids=(_costs(teams), _amounts(scope, costs.topics, known_s)),
        left_out=_unknown(scope, teams, known_s),
    )


def _costs(teams: Sequence[Row]) -> Grid:
    """What each team pays for each item, and in all."""
    items = (_money(words, f"{item}_cost") for item, words in ITEMS.items())
    columns = (GridColumn("team", _team), *items, _money("cost", "cost"))
    return grid("Teams, by cost where it is known, else by bytes", teams, columns, "")


def _amounts(scope: Scope, topics: Sequence[Row], known_s: float | None) -> Grid:
    """What each topic of a team moved and keeps; a source without a table is not known."""
    is_remote_known = scope.reader.is_made(_REMOTE)
    columns = (
        GridColumn("team", _team),
        GridColumn("topic", lambda row: texts.listed(row["topic"])),
        _bytes("produced", "produced"),
        _bytes("consumed", "consumed"),
        _bytes("crossed racks", "cross_rack_bytes"),
        _bytes("read from remote storage", "remote_bytes", is_known=is_remote_known),
        GridColumn("stored on average, all replicas", partial(_stored, known_s), NUMBER),
        _money("storage cost", "stored_cost"),
        _money("cost", "cost"),
    )
    caption = "Teams and topics, by cost where it is known, else by bytes"
    return grid(caption, topics, columns, "")


def _money(head: str, name: str) -> GridColumn:
    return GridColumn(head, lambda row: texts.money(row[name], row["currency"]), NUMBER)


def _bytes(head: str, name: str, *, is_known: bool = True) -> GridColumn:
    def show(row: Row) -> str:
        return texts.size((row[name] or 0) if is_known else None)

    return GridColumn(head, show, NUMBER)


def _stored(known_s: float | None, row: Row) -> str:
    """The average over all known time: a topic that was there for a part of it has less."""
    if not known_s or row["unsized_topics"]:
        return texts.size(None)
    return texts.size((row["byte_hours"] or 0) * 3_600 / known_s)


def _team(row: Row) -> str:
    return _NO_TEAM if row["team"] is None else texts.listed(row["team"])


def _sentence(scope: Scope, teams: Sequence[Row]) -> str:
    if not scope.conf.teams:
        return "Conf names no `teams`, so no topic belongs to a team."
    owned = [_team(row) for row in teams if row["team"] is not None]
    if not owned:
        return "No team of conf owns any of this."
    return f"{counted(len(owned), 'team')} in this time, the greatest first: {texts.names(owned)}."


def _advice(scope: Scope, teams: Sequence[Row]) -> str:
    rest = sum(
        (row["produced"] or 0) + (row["consumed"] or 0) for row in teams if row["team"] is None
    )
    if not scope.conf.teams or not rest:
        return texts.NO_STEP
    return f"Name an owner in conf (`teams`) for the {texts.size(rest)} of no team."


def _chart(teams: Sequence[Row]) -> Figure:
    shown = teams[:MAX_BARS]
    series = {way: [row[way] for row in shown] for way in ("produced", "consumed")}
    figure = bars([_team(row) for row in shown], series, "bytes", texts.size)
    return Figure(figure, "What clients of each team produced and consumed")


def _unknown(scope: Scope, teams: Sequence[Row], known_s: float | None) -> tuple[str, ...]:
    """Why numbers are not known, and which are least values."""
    sentences = [
        "Traffic counts for the team of the client, else for the team of the topic; stored bytes "
        "count for the team of the topic."
    ]
    unknown = sum(row["unknown_rack_bytes"] or 0 for row in teams)
    if unknown:
        sentences.append(
            f"Bytes that crossed racks are a minimum: for {texts.size(unknown)} the rack of one "
            "side is not known."
        )
    if not scope.reader.is_made(_REMOTE):
        sentences.append(
            "Reads from remote storage are not known: no job wrote `remote_reads` yet."
        )
    sentences += _unknown_storage(teams, known_s)
    if all(row["cost"] is None for row in teams):
        sentences.append("Costs are not known: no snapshot has prices of conf (`prices`).")
    return tuple(sentences)


def _unknown_storage(teams: Sequence[Row], known_s: float | None) -> list[str]:
    if not known_s:
        return [
            "Stored bytes are not known: that needs two snapshots at most two hours apart "
            "(`quotaflow snapshot`)."
        ]
    time = texts.duration(known_s * 1e3)
    sentences = [f"Stored bytes and their cost cover the {time} between snapshots."]
    unsized = sum(row["unsized_topics"] for row in teams)
    if unsized:
        sentences.append(
            f"Storage costs are a minimum: {counted(unsized, 'topic has', 'topics have')} hours "
            "with a replica of unknown size (`quotaflow show storage_by_hour`)."
        )
    return sentences
