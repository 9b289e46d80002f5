"""Incidents as cards, the most urgent first: what is wrong, since when, and what to do."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas import diagnoses
from quotaflow.pipelines.areas.finding import NOW
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report.charts import period_line
from quotaflow.pipelines.report.section import GridColumn, text
from quotaflow.pipelines.terminal import texts

MAX_CARDS = 6
"""The first screen shows this many cards; the others are folded."""
_MAX_NAMES = 4
_CHARS = 300
_OF_TOPICS = ("move_stalled", "unavailable", "under_min_isr", "under_replicated")
_COLUMNS = {"lag": "group_id", "rebalances": "group_id"} | dict.fromkeys(_OF_TOPICS, "topic")
"""By symptom, the column of a diagnosis that names who suffers; else it is the client."""
_SUFFERS = diagnoses.SUFFERS.code
_CODES = {
    "slow": {_SUFFERS},
    "failing": {_SUFFERS},
    "rebalances": {_SUFFERS},
    "unavailable": {_SUFFERS, "replicas_out_of_sync", "partition_under_min_isr"},
    "under_min_isr": {"replicas_out_of_sync", "partition_under_min_isr"},
    "under_replicated": {"replicas_out_of_sync", "partition_at_min_isr"},
    "lag": {"group_falls_behind", "group_behind"},
    "move_stalled": {"move_stuck", "move_stalled"},
}
"""Problems of areas that say what an incident of a symptom says."""


@dataclass(frozen=True, slots=True)
class Card:
    """One incident. `rank` is 0 once it ended; `names` are cells of a column that has pages."""

    symptom: str
    rank: int
    text: str
    when: str
    line: str
    column: GridColumn
    names: tuple[str, ...]
    action: str
    """What to do; empty once it ended."""


def cards(scope: Scope) -> tuple[Card, ...]:
    """The incidents of the time of a report: open ones first, then those that hit most."""
    rows = [row for row in scope.ask_if_made(diagnoses.INCIDENTS) if _is_within(scope, row)]
    causes = scope.ask_if_made(diagnoses.OF_CLUSTER) if rows else []
    return tuple(_card(scope, row, causes) for row in rows)


def repeated(shown: Sequence[Card]) -> frozenset[str]:
    """Codes of the problems that cards say too."""
    return frozenset(code for card in shown if card.rank for code in _CODES[card.symptom])


def _is_within(scope: Scope, row: Row) -> bool:
    return row["state"] == "open" or (row["until"] is not None and row["until"] >= scope.since)


def _card(scope: Scope, row: Row, causes: Sequence[Row]) -> Card:
    is_open = row["state"] == "open"
    column = text("who", _COLUMNS.get(row["symptom"], "client_id"))
    sentence = texts.listed(texts.step(reasons.incident(row)), _CHARS)
    # The mark of its rank says that it ended.
    when = diagnoses.period({**row, "is_ongoing": is_open})
    return Card(
        symptom=row["symptom"],
        rank=NOW if is_open else 0,
        text=sentence,
        when=when,
        line=_line(scope, row, when),
        column=column,
        names=tuple(texts.listed(name) for name in row["names"][:_MAX_NAMES]),
        action=next(_steps(scope, row, causes), "") if is_open else "",
    )


def _line(scope: Scope, row: Row, when: str) -> str:
    """When it was, in the time of the report; empty if its start is not known."""
    if row["since"] is None:
        return ""
    times = (scope.since.timestamp(), scope.until.timestamp())
    until = scope.until if row["state"] == "open" else row["until"]
    css = f"rank{NOW}" if row["state"] == "open" else ""
    return period_line(times, (row["since"].timestamp(), until.timestamp()), css, when)


def _steps(scope: Scope, incident: Row, causes: Sequence[Row]) -> Iterator[str]:
    """What to do, by the diagnoses of who suffers."""
    for row in causes:
        if _is_of(incident, row) and (step := diagnoses.step(scope, row)):
            yield f"{step[:1].upper()}{step[1:]}"


def _is_of(incident: Row, row: Mapping[str, object]) -> bool:
    name = row[_COLUMNS.get(incident["symptom"], "client_id")]
    names = (name, row["principal"])
    same = ("symptom", "cause")
    return all(incident[key] == row[key] for key in same) and any(
        each in incident["names"] for each in names
    )
