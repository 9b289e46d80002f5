"""What the commands tables and describe say about tables and views."""

import re
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from itertools import combinations
from typing import Any

from quotaflow.pipelines.errors import ConfigError, NeverMadeError, QuotaflowError, nearest
from quotaflow.pipelines.jobs import fillers
from quotaflow.pipelines.terminal import grid, readable, texts, values
from quotaflow.pipelines.warehouse import browsing, row_times, views
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.schemas import levels
from quotaflow.schemas.areas import AREAS, BY_NAME, Area
from quotaflow.schemas.metrics import METRICS
from quotaflow.schemas.table import Table, sql_type
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.view import View
from quotaflow.udfs.counted import counted

HITS = ["name", "area", "column", "meaning"]
COLUMNS = ["column", "type", "meaning"]
_VIEW = "view"
_MIN_MEANING = 30
_TYPO = 0.8
"""From so alike on a name is a slip."""
_MOST_NEAR = 5
_GAP = "  "
_NO_LETTER = re.compile(r"[^a-z0-9]+")
_ENDINGS = (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("e", ""), ("y", "y"))
_MIN_STEM = 3
_MOST_NAMES, _MOST_COLUMNS, _MOST_LINES = 15, 4, 3
"""Of a search on a terminal, the best first, and lines of each."""
_MOST_WORDS = 8
"""Words that are tried in part, those that fewest have."""
_FILLERS = {"a", "an", "and", "are", "by", "did", "do", "does", "for", "how", "in", "is", "of"}
_FILLERS |= {"per", "the", "their", "to", "was", "what", "which", "who", "whom"}
"""Words of questions that say nothing about a table."""
_NONE = {"cannot", "no", "nobody", "not", "without"}
_QUERY = "a query"
_MOST_QUESTIONS = 3
_TIMES = {"ago", "hour", "night", "now", "recent", "since", "today", "week", "yesterday"}
_OF_METRICS = "client_metrics"
_HOW_LONG_AGO = ". A time is an option: `quotaflow show TABLE --since 24h`"


class NoRelationError(QuotaflowError):
    """No table, view or column has the given words."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A table or view whose name or meaning has the words, or one of its columns that has them."""

    name: str
    column: str | None
    meaning: str

    def row(self) -> dict[str, Any]:
        """The hit as a row of HITS."""
        area = area_of(self.name).title
        return {"name": self.name, "area": area, "column": self.column, "meaning": self.meaning}


def checked_name(name: str) -> str:
    """The name, if a table or view has it. Raises ConfigError with what a search for it finds."""
    try:
        return browsing.checked_name(name)
    except ConfigError as error:
        if re.fullmatch(r"\w+", name) is None or get_close_matches(name, _described(), 1, _TYPO):
            raise
        try:
            about = dict.fromkeys(hit.name for hit in search([name]) if hit.column is None)
        except NoRelationError:
            raise error from None
        if not about:
            raise
        listed = ", ".join([*about][:_MOST_NEAR])
        hint = f"about {name}: {listed}; `quotaflow tables {name}` says what each answers"
        raise ConfigError(f"no table {name} ({hint})") from None


def area_of(name: str) -> Area:
    """The area of a table or view."""
    described = TABLES.get(name) or views.load()[name]
    return BY_NAME[described.area]


def by_area(rows: Sequence[dict[str, Any]], width: int) -> Iterator[str]:
    """Rows of `extents` as a section per area: name, rows, newest event, and the question that the
    rows answer, or else what a row is.
    """
    wide = max(len(row["name"]) for row in rows)
    for area in AREAS:
        own = [row for row in rows if row["area"] == area.title]
        if own:
            yield from _wrapped(f"{area.title}: {area.meaning}", width, "", is_bold=True)
            for row in own:
                yield from _extent_lines(row, wide, width)
            yield ""


def _extent_lines(row: dict[str, Any], wide: int, width: int) -> Iterator[str]:
    rows = _VIEW if row["kind"] == _VIEW else _count(row["rows"])
    newest = readable.whole("time", row["last_event_time"] or "")[:16]
    head = f"  {row['name']:<{wide}}{_GAP}{rows:>11}{_GAP}{newest:<16}{_GAP}"
    meaning = row["question"] or _first_sentence(row["meaning"]).removeprefix("One row per ")
    if width - len(head) < _MIN_MEANING:
        yield head.rstrip()
        yield from _wrapped(meaning, width, " " * 6)
        return
    first, *rest = _lines(meaning, width - len(head), max_lines=2, placeholder=" …") or [""]
    yield f"{head}{first}".rstrip()
    yield from (f"{' ' * len(head)}{line}" for line in rest)


def _count(rows: int | None) -> str:
    return "not made" if rows is None else f"{rows:,}"


def _wrapped(text: str, width: int, indent: str, *, is_bold: bool = False) -> Iterator[str]:
    lines = _lines(text, width, initial_indent=indent, subsequent_indent=indent)
    return (grid.bold(line) if is_bold else line for line in lines)


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")


def _lines(text: str, width: int, **how: Any) -> list[str]:
    """Lines of a text in which no name with a hyphen is cut."""
    return textwrap.wrap(text, width, break_on_hyphens=False, **how)


def search(words: Iterable[str], note: Callable[[str], None] = lambda _: None) -> list[Hit]:
    """What has all words, the best match first; if nothing has, what has most, which a note says.

    A word matches the beginning of a word: lags finds lag, and lagging too. Best is what a synonym
    names, then a name, a question, a meaning, and at last columns. Raises NoRelationError if
    nothing has any.
    """
    all_words = [word for text in words for word in re.split(r"[^\w]+", text.lower()) if word]
    lowered = [word for word in all_words if word not in _FILLERS] or all_words
    nothing = (
        f"no table, view or column has {' and '.join(map(repr, lowered))} in its name or meaning"
    )
    time = _HOW_LONG_AGO if _TIMES & {*lowered} else ""
    ranked = _ranked([lowered]) if lowered else []
    # Anybody's sentence: choices of all its words have no end.
    hits_of = {} if ranked else {word: len(_ranked([[word]])) for word in lowered}
    useful = sorted(filter(hits_of.__getitem__, hits_of), key=hits_of.__getitem__)[:_MOST_WORDS]
    named = [] if ranked else _in_metrics(lowered)
    if named:
        note(f"client metrics have these words: `quotaflow metrics {' '.join(lowered)}`")
    for size in range(len(useful), 0, -1):
        if ranked := _ranked(combinations(useful, size)):
            note(f"{nothing}: these have most of the words{time}")
            break
    if ranked or named:
        return list(dict.fromkeys([*named, *(hit for _, hits in ranked for hit in hits)]))
    near = nearest("_".join(lowered), list(_described())) if lowered else ""
    hint = near if near.startswith(" (did") else " (`quotaflow tables` lists all)"
    raise NoRelationError(f"{nothing}{hint}{time}")


def questions(words: Iterable[str]) -> Iterator[str]:
    """What answers questions of docs/questions.md that have all words and no table of their own."""
    spoken = [word for text in words for word in re.split(r"[^\w]+", text.lower()) if word]
    terms = [word for word in spoken if word not in _FILLERS | _NONE]
    having = [each for each in _questions().items() if terms and _has(each[0], terms)]
    for question, answer in having[:_MOST_QUESTIONS]:
        is_query = answer == _QUERY
        yield f"docs/questions.md has {answer}: {question}" if is_query else f"{question} {answer}"


def other_answers(words: Sequence[str], commands: Mapping[str, str]) -> Iterator[str]:
    """What may answer words that no table, view or column has: a question, a command, or why.

    `commands` has the summary of each.
    """
    terms = [word.lower() for word in words if word.lower() not in _FILLERS | _NONE]
    yield from questions(words)
    about = [name for name, text in commands.items() if terms and _has(f"{name} {text}", terms)]
    yield from (f"`quotaflow {each}` may help" for each in about[:_MOST_QUESTIONS])
    if command := texts.why(" ".join(words)):
        yield f"`{command}` asks about a client, group, topic or broker of that name"
    yield "`quotaflow --help` lists commands"


@cache
def _questions() -> dict[str, str]:
    text = files("quotaflow.pipelines.reference").joinpath("questions.toml").read_text("utf-8")
    return tomllib.loads(text)


def _in_metrics(words: list[str]) -> list[Hit]:
    """The table of metrics that clients push, if the name and meaning of one have all words."""
    texts = (f"{metric.name} {metric.meaning}" for metric in METRICS.values())
    has = words and any(_has(text, words) for text in texts)
    return [Hit(_OF_METRICS, None, TABLES[_OF_METRICS].comment)] if has else []


def _ranked(choices: Iterable[Sequence[str]]) -> list[tuple[tuple[int, int, int, str], list[Hit]]]:
    matches = (
        _match(name, each, list(words)) for words in choices for name, each in _described().items()
    )
    return sorted(filter(None, matches), key=lambda match: match[0])


def _described() -> dict[str, Table | View]:
    return {**TABLES, **views.load()}


def _match(
    name: str, each: Table | View, words: list[str]
) -> tuple[tuple[int, int, int, str], list[Hit]] | None:
    """How well a table or view matches, the least first, and its hits."""
    columns = [
        Hit(name, column.name, column.comment)
        for column in each.columns
        if _has(f"{column.name} {column.comment}", words)
    ]
    texts = (name, each.question, _first_sentence(each.comment), f"{name} {each.comment}")
    rank = next((place for place, text in enumerate(texts) if _has(text, words)), len(texts))
    stems = frozenset(map(_stem, words))
    places = {each: names.index(name) for each, names in _synonyms(stems) if name in names}
    meant = frozenset[str]().union(*places)
    everything = " ".join([*texts, *(f"{column.name} {column.comment}" for column in each.columns)])
    is_meant = meant and _has(everything, [word for word in words if _stem(word) not in meant])
    if rank == len(texts) and not columns and not is_meant:
        return None
    own = [Hit(name, None, each.comment)] if rank < len(texts) or is_meant else []
    first, second = (-len(meant), max(places.values())) if is_meant else (rank, 0)
    return (first, second, not each.question, name), own + columns


def _synonyms(stems: frozenset[str]) -> list[tuple[frozenset[str], list[str]]]:
    """Of synonyms.toml the words that are among these, each with the tables that they mean.

    What several words mean together counts instead of what each of them means.
    """
    phrases = [(words, names) for words, names in _all_synonyms().items() if words <= stems]
    return [each for each in phrases if not any(each[0] < words for words, _ in phrases)]


@cache
def _all_synonyms() -> dict[frozenset[str], list[str]]:
    text = files("quotaflow.pipelines.reference").joinpath("synonyms.toml").read_text("utf-8")
    return {
        frozenset(map(_stem, words.split())): names for words, names in tomllib.loads(text).items()
    }


def _stem(word: str) -> str:
    """A word without its ending, so that lags, lagging and lag are one."""
    for ending, new in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
            return word.removesuffix(ending) + new
    return word


def _has(text: str, words: list[str]) -> bool:
    """Whether words of the text, or the text itself as of a name, begin with all words."""
    lowered = text.lower()
    parts = [part for part in _NO_LETTER.split(lowered) if part]
    return all(
        word in lowered if "_" in word or " " in word else any(map(_begins(word), parts))
        for word in words
    )


def _begins(word: str) -> Callable[[str], bool]:
    stem = _stem(word)
    return lambda part: part.startswith((word, stem)) or _stem(part) == stem


def hit_lines(hits: Sequence[Hit], width: int) -> Iterator[str]:
    """Hits as text: each table once, with its question, and below it the columns that match."""
    names = list(dict.fromkeys(hit.name for hit in hits))
    printed: set[tuple[str, str]] = set()
    for name in names[:_MOST_NAMES]:
        each = _described()[name]
        meaning = each.question or _first_sentence(each.comment)
        yield from _entry(name, meaning, width, "", is_bold=True)
        own = [(hit.column, hit.meaning) for hit in hits if hit.name == name and hit.column]
        columns = [column for column in own if column not in printed]
        for column, text in columns[:_MOST_COLUMNS]:
            yield from _entry(column, text, width, "    ", max_lines=_MOST_LINES, placeholder=" …")
        if repeated := ", ".join(column for column, text in own if (column, text) in printed):
            yield from _entry(repeated, "as above", width, "    ")
        printed.update(columns[:_MOST_COLUMNS])
        if more := columns[_MOST_COLUMNS:]:
            yield f"    and {counted(len(more), 'column')} more"
    if more_names := names[_MOST_NAMES:]:
        yield f"and {counted(len(more_names), 'table')} more: --json has all"


def _entry(
    name: str, meaning: str, width: int, indent: str, *, is_bold: bool = False, **how: Any
) -> Iterator[str]:
    indents = {"initial_indent": indent, "subsequent_indent": f"{indent}    "}
    first, *rest = _lines(f"{name}  {meaning}", width, **indents, **how)
    head = f"{indent}{name}"
    yield (grid.bold(head) if is_bold else head) + first[len(head) :]
    yield from rest


def columns(reader: Reader, name: str) -> list[dict[str, Any]]:
    """A row of COLUMNS for each column; the types of a view are null while it has no tables."""
    table = TABLES.get(name)
    if table is not None:
        types = {column.name: sql_type(column.type) for column in table.columns}
    else:
        types = _view_types(reader, name)
    described: dict[str, Table | View] = {**TABLES, **views.load()}
    return [
        {"column": each.name, "type": types.get(each.name), "meaning": each.comment}
        for each in described[name].columns
    ]


def _view_types(reader: Reader, name: str) -> dict[str, str]:
    try:
        schema = reader.query(f"SELECT * FROM {name} LIMIT 0").schema
    except NeverMadeError:
        return {}
    types = {}
    for field in schema:
        try:
            types[field.name] = sql_type(field.type)
        except KeyError:  # a type that no table has
            types[field.name] = str(field.type).upper()
    return types


def description(name: str, rows: Sequence[dict[str, Any]], width: int) -> Iterator[str]:
    """A table or view as text: what it is, how it is filled, and its columns."""
    table, view = TABLES.get(name), views.load().get(name)
    comment = table.comment if table else view.comment if view else ""
    yield from _entry(name, comment, width, "", is_bold=True)
    yield ""
    facts = {
        "area": area_of(name).title,
        **(_of_table(table) if table else _of_view(view)),
        "--since": row_times.period(name, [row["column"] for row in rows]).meaning,
    }
    for label, fact in facts.items():
        if fact:
            yield from _lines(f"{label:<12}{fact}", width, subsequent_indent=" " * 12)
    yield ""
    wide = max(len(row["column"]) for row in rows)
    for row in rows:
        shown = " ".join(filter(None, [_short(row["type"]), "-", row["meaning"]]))
        line = f"{row['column']:<{wide}}  {values.visible(shown)}"
        yield from _lines(line, width, subsequent_indent=" " * (wide + 2))


def _short(type_name: str | None) -> str | None:
    """A type without the fields of structs, which JSON and CSV have."""
    if type_name is None or "STRUCT<" not in type_name:
        return type_name
    return "ARRAY<STRUCT>" if type_name.startswith("ARRAY<") else "STRUCT"


def _of_table(table: Table) -> dict[str, str]:
    return {
        "answers": table.question,
        "key": ", ".join(table.key),
        "time": table.time,
        "filled by": f"quotaflow {fillers.filler(table.name)}",
        "needs": levels.IN_WORDS[table.level],
        "empty": table.empty,
        "read by": ", ".join(_readers(table.name)),
    }


def _of_view(view: View | None) -> dict[str, str]:
    assert view is not None
    return {
        "answers": view.question,
        "reads": ", ".join(views.sources(view)),
        "read by": ", ".join(_readers(view.name)),
    }


def _readers(name: str) -> list[str]:
    """The views that read a table or view."""
    return [each.name for each in views.load().values() if name in views.sources(each)]


def extents(reader: Reader, *, every: bool) -> list[dict[str, Any]]:
    """`browsing.extents`, each with its area."""
    rows = browsing.extents(reader, every=every)
    return [row | {"area": area_of(row["name"]).title} for row in rows]
