"""The first page of `why`: one sentence, since when, on what a name waits, causes, what to do."""

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas import diagnoses
from quotaflow.pipelines.areas.finding import NOW, SOON, Finding
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.areas.well import well
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted

MAX_LINES, WIDTH = 12, 80
_MAX_CAUSES, _MAX_OTHERS = 2, 2
_TITLE_CHARS = 8
_INDENT = " " * (_TITLE_CHARS + 2)
_MAX_CAUSE_LINES, _MAX_FINE_LINES = 3, 2
_HINT, _CAUSE, _PROBLEM = "hint", "more cause", "more problem"
"""What is counted where it has no room."""
_LEAST_SHARE = 0.05
TABLES_OF = {
    "lag": ("why_groups_lag",),
    **dict.fromkeys(
        ("unavailable", "under_min_isr", "under_replicated"),
        ("current_replicas", "isr_shrinks"),
    ),
    "move_stalled": ("reassignments", "current_replicas", "throttle_checks"),
}
"""By symptom, tables whose problems a diagnosis says already."""
_FRESH = timedelta(minutes=5)
_COMMAND = re.compile(r"`[^`]+`|kafka-[a-z-]+\.sh .+")
"""What can be pasted: a quoted command, or one of Kafka's that ends a text."""
_GOES_ON, _JOINED = "\x01", "\x02"
"""Marks of spaces in commands: no name has them, because names are escaped."""
_SHELL_GOES_ON = " \\"
_OPTION = re.compile(r"--[a-z-]+ (?!--)\S+")


@dataclass(frozen=True, slots=True)
class CauseLine:
    """One cause: the part of the symptom that it explains, how sure it is, and what to do."""

    share: str
    text: str
    confidence: float | None
    step: str | None

    @property
    def sure(self) -> str:
        """How sure it is, in a word; empty if the cause is not known."""
        return reasons.how_sure(self.confidence)


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
    unshown: Mapping[str, int] = field(default_factory=dict)
    """What else there is, and how many: further causes and problems."""
    fine: tuple[str, ...] = ()
    """Areas that know the name, and have no problem and no hint."""
    rank: int | None = NOW
    """How bad it is; 0 once it ended, None if all is well."""

    def lines(self, name: str | None = None) -> Iterator[str]:
        """At most MAX_LINES lines of WIDTH characters; with a name, how to see all of it."""
        parts = list(self._parts())
        shown = _fitting(parts)
        room = MAX_LINES - 1 - sum(len(part.lines) for part in shown)
        for part in shown:
            yield from part.lines
        yield from _fine(self.fine, room)
        if name is not None:
            left_out = [part.what for part in parts if part not in shown]
            yield f"  {'more':<{_TITLE_CHARS}}{self._more(name, left_out)}"

    def _parts(self) -> Iterator["_Part"]:
        yield _Part(tuple(_wrapped(self.sentence, 4)), 0)
        yield _Part((f"  {self.when}",) if self.when else (), 0)
        budget = diagnoses.budget(self.parts, WIDTH - 2)
        yield _Part((f"  {budget}",) if budget else (), 2)
        if self.change:
            yield _Part(_indented("change", self.change), 4, "change")
        for nth, cause in enumerate(self.causes):
            yield from _of_cause(cause, is_first=nth == 0)
        for finding in self.others:
            yield _Part(_indented("also", _first(finding.text)), 5, _PROBLEM)
            if finding.next_step:
                yield _Part(_indented("do", finding.next_step), 7)
        if self.hint:
            yield _Part(_indented("hint", self.hint), 6, _HINT)

    def _more(self, name: str, left_out: Sequence[str]) -> str:
        """The command that shows all, and how much of what kind is not on this page."""
        unshown = Counter(what for what in left_out if what and what != _HINT)
        unshown.update(self.unshown)
        counts = [counted(many, what) for what, many in unshown.items() if many]
        hints = self.hints + left_out.count(_HINT)
        counts += [f"{hints} to improve"] if hints else []
        command = texts.why(name, "--all") or "quotaflow why NAME --all"
        return f"{command} ({', '.join(counts)})" if counts else command


@dataclass(frozen=True, slots=True)
class _Part:
    """Lines that stay together: all of them are on the page, or `what` is counted."""

    lines: tuple[str, ...]
    order: int
    """Which part has the room: that with the least."""
    what: str = ""


def verdict(
    scope: Scope, problems: Sequence[Finding], fine: Sequence[str], hints: int = 0
) -> WhyVerdict:
    """The verdict from the diagnoses of a scope's name, and the problems that its areas found.

    `hints` are what could be better beside them.
    """
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
        unshown=_unshown(first, others[_MAX_OTHERS:]),
        hint="".join(_hint(scope, row) for row in costs[:1]),
        hints=hints + sum(_rank(each) > SOON for each in problems),
        fine=tuple(fine),
    )
    if first:
        return _of_symptom(scope, page, first)
    if others and others[0].severity == NOW:
        worst, *more = others
        steps = (CauseLine("", "", None, worst.next_step),) if worst.next_step else ()
        return replace(
            page,
            sentence=_first(worst.text),
            causes=steps,
            others=tuple(more[:_MAX_OTHERS]),
            unshown=_unshown([], more[_MAX_OTHERS:]),
        )
    sentence, parts = well(scope, is_diagnosed=symptoms is not None)
    return replace(page, sentence=sentence, parts=parts, rank=None)


def _of_symptom(scope: Scope, page: WhyVerdict, causes: diagnoses.Symptom) -> WhyVerdict:
    """The page that begins with a symptom."""
    row = causes[0]
    return replace(
        page,
        sentence=diagnoses.sentence(row),
        parts=tuple(diagnoses.parts(row)) if row["symptom"] == "slow" else (),
        change=diagnoses.change(row),
        causes=_causes(scope, causes),
        fine=tuple(area for area in page.fine if area != diagnoses.AREAS_OF.get(row["cause"])),
        rank=NOW if row["is_ongoing"] else 0,
    )


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
    read = "read up to" if scope.is_past else "last seen by"
    seen = [f"{read} {last:%H:%M} UTC, {texts.age(last, scope.now)} ago"]
    return ", ".join(filter(None, [*since, *(seen if is_old else [])]))


def _as_finding(row: Row) -> Finding:
    return Finding(text=diagnoses.sentence(row), evidence_table="diagnoses", evidence=row)


def _hint(scope: Scope, row: Row) -> str:
    step = diagnoses.step(scope, row)
    return f"{diagnoses.sentence(row).rstrip('.')}: {step}"


def _is_repeated(finding: Finding, first: diagnoses.Symptom) -> bool:
    """Whether the diagnosis says what a problem of an area says."""
    return bool(first) and finding.evidence_table in TABLES_OF.get(first[0]["symptom"], ())


def _causes(scope: Scope, causes: diagnoses.Symptom) -> tuple[CauseLine, ...]:
    return tuple(
        CauseLine(
            "" if row["share"] is None else texts.share(row["share"]),
            diagnoses.cause(row),
            row["confidence"],
            diagnoses.step(scope, row),
        )
        for row in _shown_causes(causes)[:_MAX_CAUSES]
    )


def _shown_causes(causes: diagnoses.Symptom) -> diagnoses.Symptom:
    return [row for row in causes if row["share"] is None or row["share"] >= _LEAST_SHARE]


def _unshown(causes: diagnoses.Symptom, others: Sequence[Finding]) -> Mapping[str, int]:
    """How many more there are; a rest that nothing explains is no cause."""
    further = [row for row in _shown_causes(causes)[_MAX_CAUSES:] if row["confidence"] is not None]
    return {_CAUSE: len(further), _PROBLEM: len(others)}


def _of_cause(cause: CauseLine, *, is_first: bool) -> Iterator[_Part]:
    """The cause and its step; of a further cause they stay together."""
    lines: tuple[str, ...] = ()
    if cause.text:
        sure = f"({cause.sure})" if cause.sure else ""
        title = cause.share or "cause"
        lines = _indented(title, f"{cause.text} {sure}".strip())
        if len(lines) > _MAX_CAUSE_LINES:
            # Names can be long; how sure it is stays.
            cut = _indented(title, cause.text, _MAX_CAUSE_LINES - 1)
            lines = (*cut, f"{_INDENT}{sure}") if sure else cut
    step = _indented("do", cause.step) if cause.step else ()
    what = "" if cause.confidence is None else _CAUSE
    if is_first:
        yield _Part(lines, 0)
        yield _Part(step, 1, "step")
    else:
        yield _Part((*lines, *step), 3, what)


def _fitting(parts: Sequence[_Part]) -> list[_Part]:
    """The parts for which there is room, in their order."""
    room = MAX_LINES - 1
    shown = set()
    for nth in sorted(range(len(parts)), key=lambda nth: (parts[nth].order, nth)):
        if len(parts[nth].lines) <= room:
            room -= len(parts[nth].lines)
            shown.add(nth)
    return [part for nth, part in enumerate(parts) if nth in shown]


def _fine(areas: Sequence[str], room: int) -> Sequence[str]:
    """Areas without a problem: all by name if there is room, else how many more there are."""
    every = _indented("fine", ", ".join(areas))
    if not areas or len(every) <= min(room, _MAX_FINE_LINES):
        return every if areas else ()
    fewer = (_some(areas, named) for named in range(len(areas) - 1, 0, -1))
    return next((line for line in fewer if len(line) <= min(room, 1)), ())


def _some(areas: Sequence[str], named: int) -> Sequence[str]:
    others = counted(len(areas) - named, "other area")
    return _indented("fine", f"{', '.join(areas[:named])} and {others}")


def _first(text: str) -> str:
    """The first sentence of a text."""
    return f"{text.split('. ', maxsplit=1)[0].rstrip('.')}."


def _indented(title: str, text: str, most: int | None = None) -> tuple[str, ...]:
    return tuple(_wrapped(f"  {title:<{_TITLE_CHARS}}{text}", most, _INDENT))


def _wrapped(text: str, most: int | None, indent: str = "  ") -> list[str]:
    """The text in at most so many lines, from which a command can be pasted."""
    room = WIDTH - len(indent) - len(_SHELL_GOES_ON)
    marked = _COMMAND.sub(lambda match: _marked(match[0], room), text)
    lines = textwrap.wrap(
        marked, WIDTH - 1, subsequent_indent=indent, max_lines=most, placeholder=" …",
        break_long_words=True, break_on_hyphens=False, drop_whitespace=True,
    )  # fmt: skip
    return [_unmarked(line) for line in lines]


def _marked(command: str, room: int) -> str:
    """A command that stays on one line if it fits, and has marks where a shell can go on if not."""
    if len(command) <= room:
        return command.replace(" ", _JOINED)
    joined = _OPTION.sub(
        lambda match: match[0].replace(" ", _JOINED) if len(match[0]) <= room else match[0], command
    )
    return joined.replace(" ", f"{_GOES_ON} ")


def _unmarked(line: str) -> str:
    goes_on = _SHELL_GOES_ON if line.endswith(_GOES_ON) else ""
    return line.replace(_GOES_ON, "").replace(_JOINED, " ") + goes_on
