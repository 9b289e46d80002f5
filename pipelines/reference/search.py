"""The search of tables, views and their columns by words."""

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import log
from typing import Any

from quotaflow.pipelines.errors import QuotaflowError, nearest
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse import views
from quotaflow.schemas.areas import BY_NAME, Area
from quotaflow.schemas.metrics import METRICS
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.view import View

HITS = ["name", "area", "column", "meaning"]
MOST_NAMES = 15
"""Of a search on a terminal, the best first."""
_NO_LETTER = re.compile(r"[^a-z0-9]+")
_ENDINGS = (
    (("ies", "y"), ("es", ""), ("s", "")),
    (("ing", ""), ("est", ""), ("ed", ""), ("ion", ""), ("e", "")),
)
"""Of a plural, and then of other forms."""
_MIN_STEM = 3
_OF_SYNONYM, _OF_NAME, _OF_TITLE, _OF_SENTENCE, _OF_MEANING = 4, 3.2, 3, 2, 1.5
_OF_COLUMN, _OF_COLUMN_MEANING = 2, 0.7
"""What a word counts by where it is."""
_PER_PLACE = 0.5
"""What a word counts less for each table that its synonym names before."""
_LIKE, _PREFIX = 0.8, 0.5
"""The part that counts of a word with the same meaning, and of one that only begins alike."""
_WITHOUT_QUESTION = 0.8
_MOST_IN_PART = 3
_QUERY = "a query"
_SHOW = "`quotaflow show "
_MOST_QUESTIONS = 3
_TIMES = {"ago", "hour", "night", "recent", "since", "today", "week", "yesterday"}
_OF_METRICS = "client_metrics"
_HOW_LONG_AGO = ". A time is an option: `quotaflow show TABLE --since 24h`"


class NoRelationError(QuotaflowError):
    """No table, view or column has the given words."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A table or view whose name or meaning has words, or one of its columns that has them."""

    name: str
    column: str | None
    meaning: str

    def row(self) -> dict[str, Any]:
        """The hit as a row of HITS."""
        area = area_of(self.name).title
        return {"name": self.name, "area": area, "column": self.column, "meaning": self.meaning}


@dataclass(frozen=True, slots=True)
class _Match:
    """A table or view that has words: the best answer has the least order."""

    order: tuple[float, int, str]
    words: int
    hits: list[Hit]


def described() -> dict[str, Table | View]:
    """All tables and views by name."""
    return {**TABLES, **views.load()}


def area_of(name: str) -> Area:
    """The area of a table or view."""
    return BY_NAME[described()[name].area]


def first_sentence(text: str) -> str:
    """A text up to its first full stop."""
    return text.partition(". ")[0].rstrip(".")


def search(words: Iterable[str], note: Callable[[str], None] = lambda _: None) -> list[Hit]:
    """What has all words, and the next best, the best first; a note says if nothing has all.

    A word that few tables have counts most, and more in a name, title or question than in a
    meaning, and there more than in a column. Raises NoRelationError if nothing has any.
    """
    spoken = _spoken(words)
    terms = [word for word in spoken if word not in _fillers()] or spoken
    nothing = (
        f"no table, view or column has {' and '.join(map(repr, terms))} in its name or meaning"
    )
    time = _HOW_LONG_AGO if _TIMES & {*terms} else ""
    ranked = _ranked(spoken, terms)
    count = len({*map(_stem, terms)})
    whole = [each for each in ranked if each.words == count]
    part = [each for each in ranked if each.words < count]
    pushed = [] if whole else _in_metrics(terms)
    if pushed:
        note(f"client metrics have these words: `quotaflow metrics {' '.join(terms)}`")
    if part and not whole:
        note(f"{nothing}: these have most of the words{time}")
    if ranked or pushed:
        also = part[: _MOST_IN_PART if whole else MOST_NAMES]
        best = sorted([*whole, *also], key=lambda each: each.order)
        return list(dict.fromkeys([*pushed, *(hit for each in best for hit in each.hits)]))
    near = nearest("_".join(terms), list(described())) if terms else ""
    hint = near if near.startswith(" (did") else " (`quotaflow tables` lists all)"
    raise NoRelationError(f"{nothing}{hint}{time}")


def questions(words: Iterable[str]) -> Iterator[str]:
    """What answers questions of docs/questions.md that have all words and no table of their own."""
    terms = [word for word in _spoken(words) if word not in _fillers() | _negations()]
    having = [
        each
        for each in _questions().items()
        if terms and has(each[0], terms) and not each[1].startswith(_SHOW)
    ]
    for question, answer in having[:_MOST_QUESTIONS]:
        is_query = answer == _QUERY
        yield f"docs/questions.md has {answer}: {question}" if is_query else f"{question} {answer}"


def other_answers(words: Sequence[str], commands: Mapping[str, str]) -> Iterator[str]:
    """What may answer words that no table, view or column has: a question, a command, or why.

    `commands` has the summary of each.
    """
    terms = [word for word in _spoken(words) if word not in _fillers() | _negations()]
    yield from questions(words)
    about = [name for name, text in commands.items() if terms and has(f"{name} {text}", terms)]
    yield from (f"`quotaflow {each}` may help" for each in about[:_MOST_QUESTIONS])
    if command := texts.why(" ".join(words)):
        yield f"`{command}` asks about a client, group, topic or broker of that name"
    yield "`quotaflow --help` lists commands"


def has(text: str, words: Iterable[str]) -> bool:
    """Whether words of the text, or the text itself as of a name, begin with all words."""
    lowered = text.lower()
    parts = {_stem(part) for part in _parts(text)}
    return all(word in lowered if "_" in word else _alike(word, parts) for word in words)


def _spoken(words: Iterable[str]) -> list[str]:
    return [word for text in words for word in re.split(r"[^\w]+", text.lower()) if word]


def _parts(text: str) -> list[str]:
    """Words of a text, and names with all their words."""
    lowered = text.lower()
    names = [word for word in re.findall(r"\w+", lowered) if "_" in word]
    return [part for part in _NO_LETTER.split(lowered) if part] + names


def _stem(word: str) -> str:
    """A word without its ending, so that lags, lagging and lag are one."""
    for endings in _ENDINGS:
        for ending, new in endings:
            if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
                word = word.removesuffix(ending) + new
                break
    return word[:-1] if len(word) > _MIN_STEM and word[-1] == word[-2] else word


@cache
def _questions() -> dict[str, str]:
    return dict(_toml("questions"))


def _toml(name: str) -> dict[str, Any]:
    text = files("quotaflow.pipelines.reference").joinpath(f"{name}.toml").read_text("utf-8")
    return tomllib.loads(text)


@cache
def _meanings() -> dict[str, str]:
    """Of synonyms.toml each word that means another, by stem, and that other."""
    return {
        _stem(word): _stem(meant)
        for meant, alike in _toml("synonyms")["words"].items()
        for word in alike
    }


@cache
def _fillers() -> frozenset[str]:
    return frozenset(_toml("synonyms")["fillers"].split())


def _negations() -> set[str]:
    return {"no", *_toml("synonyms")["words"]["no"]}


def _meaning(word: str) -> str:
    stem = _stem(word)
    return _meanings().get(stem, stem)


@cache
def _synonyms() -> dict[frozenset[str], list[str]]:
    return {
        frozenset(map(_meaning, words.split())): names
        for words, names in _toml("synonyms")["tables"].items()
    }


def _meant(words: Iterable[str]) -> dict[str, dict[str, float]]:
    """Of each table that a synonym among the words names: how much each word counts.

    What several words mean together counts instead of what each of them means.
    """
    spoken = frozenset(map(_meaning, words))
    phrases = {each: names for each, names in _synonyms().items() if each <= spoken}
    meant: dict[str, dict[str, float]] = {}
    for phrase, names in phrases.items():
        if not any(phrase < other for other in phrases):
            for place, name in enumerate(names):
                counts = dict.fromkeys(phrase, _OF_SYNONYM - _PER_PLACE * place)
                meant[name] = counts | meant.get(name, {})
    return meant


def _in_metrics(words: list[str]) -> list[Hit]:
    """The table of metrics that clients push, if the name and meaning of one have all words."""
    meanings = (f"{metric.name} {metric.meaning}" for metric in METRICS.values())
    is_pushed = words and any(has(text, words) for text in meanings)
    return [Hit(_OF_METRICS, None, TABLES[_OF_METRICS].comment)] if is_pushed else []


@cache
def _index() -> dict[str, list[tuple[Hit, dict[str, float]]]]:
    """Of each table or view its own text, and then each column, with what each stem counts."""
    by_page: dict[str, str] = {}
    for question, answer in _questions().items():
        if answer.startswith(_SHOW):
            name = answer.removeprefix(_SHOW).partition("`")[0]
            by_page[name] = f"{by_page.get(name, '')} {question}"
    index = {}
    for name, each in described().items():
        own = _counts(
            (name, _OF_NAME),
            (f"{each.question} {by_page.get(name, '')}", _OF_TITLE),
            (first_sentence(each.comment), _OF_SENTENCE),
            (each.comment, _OF_MEANING),
        )
        columns = [
            (
                Hit(name, column.name, column.comment),
                _counts((column.name, _OF_COLUMN), (column.comment, _OF_COLUMN_MEANING)),
            )
            for column in each.columns
        ]
        index[name] = [(Hit(name, None, each.comment), own), *columns]
    return index


def _counts(*weighted: tuple[str, float]) -> dict[str, float]:
    return {_stem(part): count for text, count in reversed(weighted) for part in _parts(text)}


def _alike(word: str, others: Collection[str]) -> dict[str, float]:
    """How much each stem of texts counts for a word, of those that mean it or begin with it."""
    meaning, meanings = _meaning(word), _meanings()
    alike = {}
    if len(word) >= _MIN_STEM:
        alike = {other: _PREFIX for other in others if other.startswith(word)}
    alike |= {other: _LIKE for other in others if meanings.get(other, other) == meaning}
    stem = _stem(word)
    return alike | ({stem: 1} if stem in others else {})


def _ranked(spoken: list[str], terms: list[str]) -> list[_Match]:
    index, meant = _index(), _meant(spoken)
    every = {stem for entries in index.values() for _, counts in entries for stem in counts}
    alike = {_stem(word): _alike(word, every) for word in terms}
    values = {
        name: [
            (hit, {stem: _value(counts, others) for stem, others in alike.items()})
            for hit, counts in entries
        ]
        for name, entries in index.items()
    }
    having = {
        stem: sum(any(value[stem] for _, value in entries) for entries in values.values())
        for stem in alike
    }
    weights = {stem: log(1 + len(index) / (1 + count)) for stem, count in having.items()}
    matches = [_match(entries, weights, meant.get(name, {})) for name, entries in values.items()]
    return sorted(filter(None, matches), key=lambda each: each.order)


def _value(counts: dict[str, float], others: dict[str, float]) -> float:
    return max(
        (counts[other] * part for other, part in others.items() if other in counts), default=0
    )


def _match(
    entries: list[tuple[Hit, dict[str, float]]], weights: dict[str, float], meant: dict[str, float]
) -> _Match | None:
    """What a table or view has in its own text, and what the best of its columns adds."""
    (own, values), *columns = entries
    values = {
        stem: max(value, meant.get(_meanings().get(stem, stem), 0))
        for stem, value in values.items()
    }
    both = [{stem: max(values[stem], each[stem]) for stem in values} for _, each in columns]
    scores = [sum(each[stem] * weights[stem] for stem in weights) for each in [values, *both]]
    score, best = max(zip(scores, [values, *both], strict=True), key=lambda each: each[0])
    if score == 0:
        return None
    words = [sum(map(bool, each.values())) for _, each in columns]
    most = max(max(words, default=0), min(2, len(values)))
    hits = [hit for (hit, _), count in zip(columns, words, strict=True) if count == most]
    if any(values.values()):
        hits.insert(0, own)
    is_answer = meant or described()[own.name].question
    order = (-score * (1 if is_answer else _WITHOUT_QUESTION), own.name.count("_"), own.name)
    return _Match(order, sum(map(bool, best.values())), hits or [own])
