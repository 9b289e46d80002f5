"""Renders a template of reasons.yaml with the cells of a row: names are cut and escaped.

In braces of a template stand:

- `{topic}`: a cell as a name.
- `{bytes:size}`: a number in a form of `_FORMS`; `0` is that of ids and values of configs.
- `{usage:unit}`: a signal with its unit, which `with_signals` has beside it.
- `{hosts|host}`, `{answers|batch was|batches were}`: a whole number with its noun.
- `{UNIT}`: a phrase. The first of its cases that is true of the row is its text.

A cell that is not known is `?`. A condition is `column` (it is known), `column=value`,
`column!=value` or `column>number`; of several all must be true.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import Any

from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.terminal.values import visible
from quotaflow.udfs.counted import noun

MAX_NAME_CHARS = 100
"""Longer names in a sentence are cut."""
UNKNOWN = "?"
Row = Mapping[str, Any]
"""A row of the view that has the code."""
OF_EVERY_ROW = frozenset(
    {"reason_code", "config_key", "entity_type", "entity_name", "evidence_table"}
)
"""Columns that say what a row of desired_configs is about: a sentence may read them unlisted."""

_PLACE = re.compile(r"\{(\w+)(?::(\w+)|\|([^|{}]+)(?:\|([^|{}]+))?)?\}")
_SECTION = re.compile(r"^([a-z][\w.]*):\n", re.M)
_CONDITION = re.compile(r"(\w+)(?:(!?=|>)(\w+))?")
_FORMS: Mapping[str, Callable[[float], str]] = {
    "0": texts.fixed,
    "count": partial(texts.fixed, group=","),
    "number": texts.number,
    "size": texts.size,
    "rate": texts.rate,
    "share": texts.share,
    "duration": texts.duration,
    "seconds": lambda s: texts.duration(s * 1e3),
}


@dataclass(frozen=True, slots=True)
class Wording:
    """What one code means, its template, which columns are its evidence, and what cures it.

    A cure is a template too.
    """

    code: str
    meaning: str
    template: str
    evidence: tuple[str, ...]
    cure: str | None

    def words(self, row: Row) -> str:
        """The sentence of a row with this code."""
        return rendered(self.template, row)


Place = tuple[str, str]
"""View and column of a code."""


@dataclass(frozen=True, slots=True)
class Wordings:
    """The wordings of one column of codes, by code, with the heading of their page."""

    title: str
    by_code: Mapping[str, Wording]


def wordings() -> Mapping[Place, Wordings]:
    """The wordings of every column that has codes."""
    places = (name.partition(".") for name in _texts())
    return {(view, column): wordings_of((view, column)) for view, _, column in places if column}


@cache
def wordings_of(place: Place) -> Wordings:
    """The wordings of one column. Raises KeyError for one that has no codes."""
    section = sentences(".".join(place))
    each = {code: _wording(code, **fields) for code, fields in section["codes"].items()}
    return Wordings(section["title"], each)


@cache
def sentences(section: str) -> Mapping[str, Any]:
    """A section of the file, such as templates by code that are about no view."""
    import yaml  # noqa: PLC0415  a bundle builds without packages

    # By libyaml, where it is there: in a tenth of the time.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(_texts()[section], loader)  # type: ignore[no-any-return]  # noqa: S506  both are safe


@cache
def _texts() -> Mapping[str, str]:
    """The text of each section: to parse all takes longer than a query."""
    text = files("quotaflow.pipelines.reasons").joinpath("reasons.yaml").read_text(encoding="utf-8")
    _, *parts = _SECTION.split(text)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _wording(
    code: str, *, means: str, text: str, also: tuple[str, ...] = (), cure: str | None = None
) -> Wording:
    evidence = dict.fromkeys(column for column in _columns(text) if column not in OF_EVERY_ROW)
    return Wording(code, means, text, (*evidence, *also), cure)


def worded(place: Place, row: Row) -> str:
    """The sentence of a row; a code of another version, which has no words here, as it is."""
    code = row[place[1]]
    wording = wordings_of(place).by_code.get(code)
    return cut(code) if wording is None else wording.words(row)


def with_signals(row: Row) -> Row:
    """A row with the value of each signal of its evidence, and its unit, as more columns.

    A signal may have the name of a principal, so it never takes the place of what is there.
    """
    evidence = [*reversed(row.get("evidence") or ())]
    values = {each["signal"]: each["value"] for each in evidence}
    units = {f"{each['signal']}_unit": each.get("unit") for each in evidence}
    return {**units, **values, **row}


def cut(text: object) -> str:
    """A text that a client chose: cut, and what does not print escaped."""
    shown = visible(str(text)[:MAX_NAME_CHARS])
    return shown if len(shown) <= MAX_NAME_CHARS else shown[: MAX_NAME_CHARS - 1] + "…"


def name(row: Row, column: str) -> str:
    """A cell as a name; ? if it is not known."""
    return UNKNOWN if row[column] is None else cut(row[column])


def rendered(template: str, row: Row) -> str:
    """A template with the cells of a row. Raises KeyError for what the row does not have."""
    return _PLACE.sub(lambda place: _shown(place, row), template)


def _shown(place: re.Match[str], row: Row) -> str:
    column, form, one, many = place.groups()
    if column.isupper():
        derived = _DERIVED.get(column)
        return derived[0](row) if derived else rendered(_chosen(column, row), row)
    cell = row[column]
    if one:
        number = UNKNOWN if cell is None else texts.fixed(float(cell), group=",")
        return f"{number} {noun(number, one, many)}"
    if cell is None:
        return UNKNOWN
    if form == "unit":
        return texts.with_unit(float(cell), row[f"{column}_unit"])
    return _FORMS[form](float(cell)) if form else cut(cell)


def _cases(phrase: str) -> Iterator[tuple[str, str]]:
    """The condition and the template of each case of a phrase."""
    for case in sentences("phrases")[phrase]:
        yield (case["if"], case["text"]) if isinstance(case, dict) else ("", case)


def _chosen(phrase: str, row: Row) -> str:
    return next(
        text
        for conditions, text in _cases(phrase)
        if all(_is_true(condition.groups(), row) for condition in _CONDITION.finditer(conditions))
    )


def _is_true(condition: tuple[str, ...], row: Row) -> bool:
    column, sign, value = condition
    # A row that an older version computed may lack a signal.
    cell = row.get(column)
    if sign == ">":
        return cell is not None and float(cell) > float(value)
    if sign:
        return (str(cell) == value) is (sign == "=")
    return cell not in {None, ""}


def _columns(template: str) -> Iterator[str]:
    """The columns that a template reads, with those of its phrases."""
    for column, *_ in _PLACE.findall(template):
        if column in _DERIVED:
            yield from _DERIVED[column][1]
        elif column.isupper():
            for conditions, text in _cases(column):
                yield from _columns(text)
                yield from (condition[0] for condition in _CONDITION.findall(conditions))
        else:
            yield column


def meaning(place: Place, code: str | None) -> str | None:
    """What a code means, as a clause without a full stop; None without words for it."""
    wording = wordings_of(place).by_code.get(code or "")
    if wording is None:
        return None
    return f"{wording.meaning[0].lower()}{wording.meaning[1:]}".rstrip(".")


def text_of_code(place: Place, code: str | None) -> str:
    """What a code means; one of another version as it is, and empty if there is none."""
    return "" if code is None else meaning(place, code) or cut(code)


def cure(cause: str | None) -> str | None:
    """What the owner of a program should do about a cause; None where nobody is accused."""
    wording = wordings_of(("producer_id_bursts", "cause")).by_code.get(cause or "")
    return None if wording is None else wording.cure


def accusation(row: Row, offender: str, ids: str, cause: str) -> str:
    """Who took producer ids, why, and what its owner should do, of a row with these columns."""
    code = row[cause] if row[cause] is None else str(row[cause])
    taken = rendered(f"{offender} took {{{ids}|producer id}}", row)
    why = text_of_code(("producer_id_bursts", "cause"), code)
    step = cure(code) or "see `quotaflow show producer_id_bursts`"
    return "; ".join(filter(None, (taken, why, step)))


def _cause_of_lag(row: Row) -> str:
    return meaning(("why_groups_lag", "cause"), row["cause"]) or name(row, "cause")


def _seconds(row: Row) -> str:
    return texts.duration((row["ended_at"] - row["started_at"]).total_seconds() * 1e3)


def _at_all_brokers(row: Row) -> str:
    value, brokers = row["config_value"], row["brokers"]
    return (
        UNKNOWN
        if value is None or brokers is None
        else texts.fixed(float(value) * brokers, group=",")
    )


_DERIVED: Mapping[str, tuple[Callable[[Row], str], tuple[str, ...]]] = {
    "OFFENDER": (
        partial(accusation, offender="{subject}", ids="producer_ids", cause="reason_detail"),
        ("subject", "producer_ids", "reason_detail"),
    ),
    "OF_ALL_BROKERS": (_at_all_brokers, ("config_value", "brokers")),
    "CAUSE_OF_LAG": (_cause_of_lag, ("cause",)),
    "SECONDS": (_seconds, ("started_at", "ended_at")),
}
"""Phrases that are computed, with the columns that they read."""
