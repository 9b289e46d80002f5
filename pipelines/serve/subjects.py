"""The page of one name: what `quotaflow why` says of it, with its charts and lists."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from quotaflow.pipelines.advice.why import Answer, AreaAnswer, why
from quotaflow.pipelines.areas import texts
from quotaflow.pipelines.areas.about import Period
from quotaflow.pipelines.areas.finding import FACT, NOTHING, PROBLEM
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.areas.subject import UnknownNameError
from quotaflow.pipelines.errors import NeverMadeError, QueryError
from quotaflow.pipelines.jobs import fillers
from quotaflow.pipelines.report.section import (
    BROKER,
    CLIENT,
    GROUP,
    MOVE,
    PRINCIPAL,
    TOPIC,
    Chart,
    Grid,
    ReportSection,
)
from quotaflow.pipelines.serve.drawings import DRAWINGS, conditions
from quotaflow.udfs.counted import counted

KINDS = (PRINCIPAL, CLIENT, GROUP, TOPIC, BROKER, MOVE)
"""Kinds of names with a page."""

_IN_WHY = {PRINCIPAL, CLIENT, GROUP, TOPIC}
"""Those that `quotaflow why` knows."""
_LOOKBACK = timedelta(minutes=5)
_TEXT_CHARS = 1_000
_MAX_FACTS = 3
_MOVED = """
SELECT replica_id, state, requested_time, offsets_left FROM reassignments
WHERE cluster_id = {cluster} AND {is}
ORDER BY requested_time DESC, replica_id
LIMIT 5
"""
_BROKER = """
SELECT host, port, rack, is_controller, is_fenced FROM current_brokers
WHERE cluster_id = {cluster} AND {is}
"""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A finding as the page has it."""

    text: str
    state: str
    next_step: str
    table: str


@dataclass(frozen=True, slots=True)
class AreaPart:
    """What an area found: what is shown at once, and more facts, which are folded."""

    name: str
    shown: tuple[Sentence, ...]
    folded: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class SubjectPage:
    """What is known of a name. `nothing` names the areas that were asked in vain."""

    meanings: tuple[str, ...]
    time_range: str
    areas: tuple["AreaPart", ...]
    nothing: str
    drawn: ReportSection

    @property
    def is_well(self) -> bool:
        """Whether `why` found no problem."""
        states = [sentence.state for area in self.areas for sentence in area.shown]
        return PROBLEM not in states


def page(scope: Scope, kind: str, name: str) -> SubjectPage:
    """The page of a name. Raises UnknownNameError if the tables have nothing of it."""
    parts = conditions(scope, kind, name)
    if parts is None:
        raise UnknownNameError(f"no {kind} has the name {texts.listed(name)}")
    drawn = _drawn(scope, kind, parts)
    has_rows = bool(drawn.charts or drawn.grids or drawn.sentences)
    if kind not in _IN_WHY:
        if not has_rows:
            raise UnknownNameError(f"the tables have no {kind} {texts.listed(name)}")
        return SubjectPage((), "", (), "", drawn)
    period = Period(None, _LOOKBACK)
    try:
        answered = why(scope.reader, name, period, scope.cluster_id or None, scope.conf)
    except UnknownNameError:
        if not has_rows:
            raise
        return SubjectPage((), "", (), "", drawn)
    return _answered(answered, drawn)


def _answered(answered: Answer, drawn: ReportSection) -> SubjectPage:
    empty = [area for area in answered.areas if _is_nothing(area)]
    names = ", ".join(_area_name(area) for area in empty)
    tables = ", ".join(area.findings[0].evidence_table for area in empty)
    return SubjectPage(
        tuple(texts.listed(meaning, texts.SENTENCE_CHARS) for meaning in answered.subject.meanings),
        texts.time_range(answered.start, answered.end),
        tuple(_area_part(area) for area in answered.areas if area not in empty),
        f"Nothing found about {names}: asked {tables}." if empty else "",
        drawn,
    )


def _area_part(area: AreaAnswer) -> AreaPart:
    """All that is wrong or not known, and the first facts; the others are folded."""
    every = tuple(_sentences(area))
    folded = [sentence for sentence in every if sentence.state == FACT][_MAX_FACTS:]
    shown = tuple(sentence for sentence in every if sentence not in folded)
    return AreaPart(_area_name(area), shown, tuple(folded))


def _sentences(area: AreaAnswer) -> Iterator[Sentence]:
    for finding in area.findings:
        yield Sentence(
            texts.listed(finding.text, _TEXT_CHARS),
            finding.state,
            texts.listed(finding.next_step or "", _TEXT_CHARS),
            finding.evidence_table,
        )


def _area_name(area: AreaAnswer) -> str:
    return area.name.replace("_", " ")


def _is_nothing(area: AreaAnswer) -> bool:
    return [finding.state for finding in area.findings] == [NOTHING]


def _drawn(scope: Scope, kind: str, parts: Mapping[str, str]) -> ReportSection:
    charts: list[Chart] = []
    grids: list[Grid] = []
    sentences: list[str] = []
    left_out: dict[str, None] = {}
    for drawing in DRAWINGS[kind]:
        try:
            made = drawing.draw(scope, parts)
        except NeverMadeError as error:
            left_out[f"Not known yet: {error}: {fillers.hint(error.table)}."] = None
        except QueryError as error:
            problem = texts.listed(error, texts.SENTENCE_CHARS)
            left_out[f"{drawing.caption}: not known: {problem}."] = None
        else:
            if isinstance(made, Chart):
                charts.append(made)
            elif isinstance(made, str):
                sentences.append(made)
            elif made is not None:
                grids.append(made)
    return ReportSection(
        "Charts and lists" if kind in _IN_WHY else "What is known",
        time_range=texts.time_range(scope.since, scope.until),
        sentences=(*_states(scope, kind, parts), *sentences),
        charts=tuple(charts),
        grids=tuple(grids),
        left_out=tuple(left_out),
    )


def _states(scope: Scope, kind: str, parts: Mapping[str, str]) -> Iterator[str]:
    """Where a broker is, as the last snapshot has it; how far the last moves of a partition are."""
    if kind == BROKER and scope.reader.is_made("brokers"):
        for row in scope.rows(_BROKER, **parts):
            rack = "no rack" if row["rack"] is None else f"rack {texts.listed(row['rack'])}"
            also = "; it is the controller" if row["is_controller"] else ""
            also += "; it is fenced: it leads no partition" if row["is_fenced"] else ""
            yield f"It is at {texts.listed(row['host'])}:{row['port']} in {rack}{also}."
    if kind == MOVE and scope.reader.is_made("reassignments"):
        for row in scope.rows(_MOVED, **parts):
            left = row["offsets_left"]
            also = f", {counted(left, 'offset is', 'offsets are')} left" if left else ""
            state = texts.listed(row["state"]).replace("_", " ")
            when = texts.moment(row["requested_time"])
            yield f"To broker {row['replica_id']}: {state}, requested at {when} UTC{also}."
