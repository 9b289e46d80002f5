"""The first page of `why`: one sentence, since when, on what a name waits, causes, what to do."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from quotaflow.pipelines.areas import diagnoses
from quotaflow.pipelines.areas.finding import NOW, SOON, Finding
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.terminal import texts

MAX_LINES, WIDTH = 12, 80
_MAX_CAUSES, _MAX_OTHERS = 2, 2
_TITLE_CHARS = 8
_LEAST_SHARE = 0.05
_TABLES_OF = {
    "lag": ("why_groups_lag",),
    **dict.fromkeys(
        ("unavailable", "under_min_isr", "under_replicated"),
        ("current_replicas", "min_isr_shrinks"),
    ),
    "move_stalled": ("reassignments", "current_replicas", "throttle_checks"),
}
"""By symptom, tables whose problems a diagnosis says already."""
_FRESH = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class CauseLine:
    """One cause: the part of the symptom that it explains, how sure it is, and what to do."""

    share: str
    text: str
    confidence: float | None
    step: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyVerdict:
    """What is wrong with a name, or that it is well."""

    sentence: str
    when: str
    """Since when, and how old the tables are."""
    parts: tuple[tuple[str, float], ...] = ()
    """The budget of a wait, in ms; empty where something else is wrong."""
    change: str = ""
    """Which config changed right before; empty if none did."""
    causes: tuple[CauseLine, ...] = ()
    others: tuple[Finding, ...] = ()
    """Further problems, the worst first."""
    hint: str = ""
    """What costs most without need, and what spares it; empty if nothing does."""
    hints: int = 0
    """Improvements: nobody suffers."""
    fine: tuple[str, ...] = ()
    """Areas that have no problem."""
    rank: int | None = NOW
    """How bad it is; 0 once it ended, None if all is well."""

    def lines(self, name: str | None = None) -> Iterator[str]:
        """At most MAX_LINES lines of WIDTH characters; with a name, how to see all of it."""
        lines = [line for part in self._lines() for line in part]
        yield from lines[: MAX_LINES - 1]
        if name is not None:
            yield f"  {'more':<{_TITLE_CHARS}}{self._more(name)}"

    def _lines(self) -> Iterator[Sequence[str]]:
        yield _wrapped(self.sentence, 2)
        yield [f"  {self.when}"] if self.when else []
        yield _fitting(diagnoses.budget(self.parts))
        yield _indented("change", self.change, 2) if self.change else []
        for cause in self.causes:
            yield from _of_cause(cause)
        for finding in self.others:
            yield _indented("also", _first(finding.text), 2)
        if self.hint:
            yield _indented("hint", self.hint, 2)
        if self.fine:
            yield _indented("fine", ", ".join(self.fine), 1)

    def _more(self, name: str) -> str:
        hints = f" ({self.hints} to improve)" if self.hints else ""
        command = texts.why(name, "--all") or "quotaflow why NAME --all"
        return f"{command}{hints}"


def verdict(scope: Scope, problems: Sequence[Finding], fine: Sequence[str]) -> WhyVerdict:
    """The verdict from the diagnoses of a scope's name, and the problems that its areas found."""
    symptoms = diagnoses.symptoms_if_known(scope)
    costs = [causes[0] for causes in symptoms or () if causes[0]["symptom"] == diagnoses.COST]
    harms = [causes for causes in symptoms or () if causes[0]["symptom"] != diagnoses.COST]
    first, *further = harms or [[]]
    others = [_as_finding(causes[0]) for causes in further if causes[0]["is_ongoing"]]
    others += sorted(
        (each for each in problems if _rank(each) <= SOON and not _is_repeated(each, first)),
        key=_rank,
    )
    page = WhyVerdict(
        sentence="",
        when=_when(scope, first[0] if first else None),
        others=tuple(others[:_MAX_OTHERS]),
        hint="".join(_hint(scope, row) for row in costs[:1]),
        hints=sum(_rank(each) > SOON for each in problems),
        fine=tuple(fine),
    )
    if first:
        row = first[0]
        return replace(
            page,
            sentence=diagnoses.sentence(row),
            parts=tuple(diagnoses.parts(row)) if row["symptom"] == "slow" else (),
            change=diagnoses.change(row),
            causes=_causes(scope, first),
            fine=tuple(area for area in fine if area != diagnoses.AREAS_OF.get(row["cause"])),
            rank=NOW if row["is_ongoing"] else 0,
        )
    if others and others[0].severity == NOW:
        worst, *more = others
        steps = (CauseLine("", "", None, worst.next_step),) if worst.next_step else ()
        return replace(
            page, sentence=_first(worst.text), causes=steps, others=tuple(more[:_MAX_OTHERS])
        )
    sentence, parts = diagnoses.well(scope, is_diagnosed=symptoms is not None)
    return replace(page, sentence=sentence, parts=parts, rank=None)


def _rank(problem: Finding) -> int:
    return problem.severity or SOON


def _when(scope: Scope, row: Row | None) -> str:
    since = [] if row is None else [diagnoses.when(row)]
    if scope.is_past and row is not None and row["until"] and row["until"] > scope.until:
        return ", ".join([*since, "the numbers are of this whole time"])
    # A group may lag an hour after its last request.
    until = [row["until"]] if row is not None and row["is_ongoing"] and row["until"] else []
    last = max([scope.until, *until])
    is_old = scope.now - last > _FRESH
    read = "read up to" if scope.is_past else "the data end at"
    seen = [f"{read} {last:%H:%M} UTC, {texts.age(last, scope.now)} ago"]
    return ", ".join(filter(None, [*since, *(seen if is_old else [])]))


def _as_finding(row: Row) -> Finding:
    return Finding(text=diagnoses.sentence(row), evidence_table="diagnoses", evidence=row)


def _hint(scope: Scope, row: Row) -> str:
    step = diagnoses.step(scope, row)
    return f"{diagnoses.sentence(row).rstrip('.')}: {step}"


def _is_repeated(finding: Finding, first: diagnoses.Symptom) -> bool:
    """Whether the diagnosis says what a problem of an area says."""
    return bool(first) and finding.evidence_table in _TABLES_OF.get(first[0]["symptom"], ())


def _causes(scope: Scope, causes: diagnoses.Symptom) -> tuple[CauseLine, ...]:
    return tuple(
        CauseLine(
            "" if row["share"] is None else texts.share(row["share"]),
            diagnoses.cause(row),
            row["confidence"],
            diagnoses.step(scope, row),
        )
        for row in causes[:_MAX_CAUSES]
        if row["share"] is None or row["share"] >= _LEAST_SHARE
    )


def _of_cause(cause: CauseLine) -> Iterator[Sequence[str]]:
    if cause.text:
        sure = "" if cause.confidence is None else f" (sure: {texts.share(cause.confidence)})"
        yield _indented(cause.share or "cause", f"{cause.text}{sure}", 2)
    if cause.step:
        yield _indented("do", cause.step, 4)


def _fitting(parts: Sequence[str]) -> list[str]:
    """As many parts, in one line, as there is room for."""
    line = ""
    for part in parts:
        longer = f"{line} · {part}" if line else f"  {part}"
        line = longer if len(longer) <= WIDTH else line
    return [line] if line else []


def _first(text: str) -> str:
    """The first sentence of a text."""
    return f"{text.split('. ', maxsplit=1)[0].rstrip('.')}."


def _indented(title: str, text: str, most: int) -> list[str]:
    indent = " " * (_TITLE_CHARS + 2)
    return _wrapped(f"  {title:<{_TITLE_CHARS}}{text}", most, indent)


def _wrapped(text: str, most: int, indent: str = "  ") -> list[str]:
    """The text in at most so many lines."""
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, max_lines=most, placeholder=" …",
        break_long_words=True, break_on_hyphens=False, drop_whitespace=True,
    )  # fmt: skip
