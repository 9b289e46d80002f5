"""The page of one name: what `quotaflow why` says of it, with its charts and lists."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import chain

from quotaflow.pipelines.areas import changes, diagnoses, pages
from quotaflow.pipelines.areas.about import Period
from quotaflow.pipelines.areas.finding import Finding
from quotaflow.pipelines.areas.names import BROKER, CLIENT, GROUP, MOVE, PRINCIPAL, TOPIC
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.areas.subject import UnknownNameError
from quotaflow.pipelines.areas.verdict import WhyVerdict
from quotaflow.pipelines.areas.why import AreaAnswer, WhyAnswer, why
from quotaflow.pipelines.errors import NeverMadeError, QueryError
from quotaflow.pipelines.jobs import fillers
from quotaflow.pipelines.report.charts import bars
from quotaflow.pipelines.report.section import Figure, Grid, ReportSection
from quotaflow.pipelines.serve.drawings import conditions, drawings
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted

_IN_WHY = {BROKER, PRINCIPAL, CLIENT, GROUP, TOPIC}
"""Those that `quotaflow why` knows."""
_LOOKBACK = timedelta(minutes=5)
_TEXT_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class SubjectPage:
    """What is known of a name. `nothing` names the areas that were asked in vain."""

    meanings: tuple[str, ...]
    time_range: str
    areas: tuple[AreaAnswer, ...]
    nothing: str
    drawn: ReportSection
    verdict: WhyVerdict | None = None
    """What the first page of `quotaflow why` says."""
    budget: str = ""
    """On what a mean request waits, drawn."""
    damages: tuple[str, ...] = ()
    """Damaged tables that would say more of the name."""


def page(scope: Scope, kind: str, name: str) -> SubjectPage:
    """The page of a name. Raises UnknownNameError if the tables have nothing of it."""
    parts = conditions(scope, kind, name)
    if parts is None:
        raise UnknownNameError(f"no {kind} has the name {texts.listed(name)}")
    try:
        answered = _why(scope, kind, name)
    except UnknownNameError:
        drawn = _drawn(scope, kind, parts)
        if not (drawn.charts or drawn.grids or drawn.sentences):
            raise
        return SubjectPage((), "", (), "", drawn)
    findings = chain(*(area.findings for area in answered.areas if area.name == changes.NAME))
    return _answered(answered, _drawn(scope, kind, parts, changes.marks(findings)))


def _why(scope: Scope, kind: str, name: str) -> WhyAnswer:
    """What `quotaflow why` says of the name. Raises UnknownNameError."""
    if kind not in _IN_WHY:
        raise UnknownNameError(f"the tables have no {kind} {texts.listed(name)}")
    full_name = f"broker-{name}" if kind == BROKER else name
    period = Period(None, _LOOKBACK)
    return why(scope.reader, full_name, period, scope.cluster_id or None, scope.conf)


def _answered(answered: WhyAnswer, drawn: ReportSection) -> SubjectPage:
    return SubjectPage(
        tuple(texts.listed(meaning, texts.SENTENCE_CHARS) for meaning in answered.subject.meanings),
        texts.time_range(answered.start, answered.end),
        tuple(
            replace(area, findings=tuple(map(_cut, area.findings)))
            for area in answered.with_findings
        ),
        answered.nothing,
        drawn,
        _readable(answered.verdict),
        _budget(answered.verdict.parts),
        tuple(texts.listed(damage, _TEXT_CHARS) for damage in answered.damages),
    )


def _readable(verdict: WhyVerdict) -> WhyVerdict:
    """The verdict with texts that print; its others are the first sentence of each."""
    shown = partial(texts.listed, chars=_TEXT_CHARS)
    return replace(
        verdict,
        sentence=shown(verdict.sentence),
        change=shown(verdict.change),
        hint=shown(verdict.hint),
        causes=tuple(
            replace(each, text=shown(each.text), step=each.step and shown(each.step))
            for each in verdict.causes
        ),
        others=tuple(map(_cut, verdict.others)),
    )


def _budget(parts: Sequence[tuple[str, float]]) -> str:
    series = {name: [dict(parts).get(part)] for part, name in diagnoses.PARTS.items()}
    return bars(["a request"], series, "mean wait", texts.duration) if parts else ""


def _cut(finding: Finding) -> Finding:
    text, step = (
        texts.listed(each or "", _TEXT_CHARS) for each in (finding.text, finding.next_step)
    )
    return replace(finding, text=text, next_step=step)


def _drawn(
    scope: Scope, kind: str, parts: Mapping[str, str], marks: Sequence[tuple[float, str]] = ()
) -> ReportSection:
    charts: list[Figure] = []
    grids: list[Grid] = []
    sentences: list[str] = []
    left_out: dict[str, None] = {}
    for drawing in drawings(kind, marks):
        try:
            made = drawing.draw(scope, parts)
        except NeverMadeError as error:
            left_out[f"Not known yet: {error}: {fillers.hint(error.table)}."] = None
        except QueryError as error:
            problem = texts.listed(error, texts.SENTENCE_CHARS)
            left_out[f"{drawing.caption}: not known: {problem}."] = None
        else:
            if isinstance(made, Figure):
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
        for row in scope.rows(pages.BROKER, **parts):
            rack = "no rack" if row["rack"] is None else f"rack {texts.listed(row['rack'])}"
            also = "; it is the controller" if row["is_controller"] else ""
            also += "; it is fenced: it leads no partition" if row["is_fenced"] else ""
            yield f"It is at {texts.listed(row['host'])}:{row['port']} in {rack}{also}."
    if kind == MOVE and scope.reader.is_made("reassignments"):
        for row in scope.rows(pages.LAST_MOVES, **parts):
            left = row["offsets_left"]
            also = f", {counted(left, 'offset is', 'offsets are')} left" if left else ""
            state = texts.listed(row["state"]).replace("_", " ")
            when = texts.moment(row["requested_time"])
            yield f"To broker {row['replica_id']}: {state}, requested at {when} UTC{also}."
