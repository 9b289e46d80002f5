"""The times of the rows that a query reads of each table, as far as its text says so.

Only constants count, such as `event_time >= TIMESTAMPTZ '2026-01-01'` or
`event_time > now() - INTERVAL 1 HOUR`. The conditions stay in the query, so bounds that are too
wide cost time and no rows.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

import duckdb

from quotaflow.pipelines.warehouse.python_times import time_of

Node = dict[str, Any]
"""An object of a syntax tree, as DuckDB serializes it."""

_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_MICROSECOND = timedelta(microseconds=1)
_DATE, _DAY = "event_date", timedelta(days=1)
_CLOCK = ("now", "get_current_timestamp", "today", "current_date")
# What else a constant may be made by: no function that gives another value at each call.
_CONSTANT = {
    *(*_CLOCK, "+", "-", "*", "trunc"),
    *(f"to_{unit}" for unit in ("seconds", "minutes", "hours", "days", "weeks", "months", "years")),
    *("date_trunc", "make_timestamp", "make_timestamptz", "epoch_ms", "to_timestamp"),
}
_MIRRORED = {
    "COMPARE_GREATERTHANOREQUALTO": "COMPARE_LESSTHANOREQUALTO",
    "COMPARE_GREATERTHAN": "COMPARE_LESSTHAN",
    "COMPARE_LESSTHANOREQUALTO": "COMPARE_GREATERTHANOREQUALTO",
    "COMPARE_LESSTHAN": "COMPARE_GREATERTHAN",
    "COMPARE_EQUAL": "COMPARE_EQUAL",
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Times from `start` up to, not including, `end`; None: no bound."""

    start: datetime | None = None
    end: datetime | None = None

    def within(self, other: "Bounds") -> "Bounds":
        """The times of both."""
        starts = [each for each in (self.start, other.start) if each]
        ends = [each for each in (self.end, other.end) if each]
        return Bounds(max(starts, default=None), min(ends, default=None))

    def joined(self, other: "Bounds") -> "Bounds":
        """The times of either, and those between."""
        start = min(self.start, other.start) if self.start and other.start else None
        return Bounds(start, max(self.end, other.end) if self.end and other.end else None)


def bounds(
    nodes: Iterable[Node], times: Mapping[str, Sequence[str]], parser: duckdb.DuckDBPyConnection
) -> dict[str, Bounds]:
    """The bounds of each table that has some wherever a query names it.

    `times` has the columns with the time, or its date, of each table. `parser` evaluates constants.
    """
    evaluate = _Constants(parser).time
    named, bounded = Counter[str](), dict[str, list[Bounds]]()
    for node in nodes:
        if node.get("type") == "BASE_TABLE":
            named[_name(node)] += 1
        if node.get("type") == "SELECT_NODE":
            for table, each in _of_select(node, times, evaluate):
                bounded.setdefault(table, []).append(each)
    widest_of = dict[str, Bounds]()
    for table, every in bounded.items():
        widest = every[0]
        for each in every[1:]:
            widest = widest.joined(each)
        if len(every) == named[table] and widest != Bounds():
            widest_of[table] = widest
    return widest_of


def _of_select(
    node: Node, times: Mapping[str, Sequence[str]], evaluate: Callable[[Node], datetime | None]
) -> Iterator[tuple[str, Bounds]]:
    """Each table of one FROM with the bounds that its WHERE has for it.

    A row of any join that lacks the table has null as its time, which no comparison lets through.
    """
    tables = list(_tables(node["from_table"]))
    conditions = list(_conjuncts(node.get("where_clause")))
    for table in tables:
        name = _name(table)
        if name in times and not table.get("column_name_alias"):
            alias = (table.get("alias") or name).lower()
            prefixes: set[tuple[str, ...]] = {(alias,), ()} if len(tables) == 1 else {(alias,)}
            every = Bounds()
            for condition in conditions:
                each = _bounds(condition, times[name], prefixes, evaluate)
                # Until the query runs, the clock goes on, and new rows may come.
                every = every.within(Bounds(each.start) if _reads_the_clock(condition) else each)
            yield name, every


_JOINED = {"CONJUNCTION_AND": Bounds.within, "CONJUNCTION_OR": Bounds.joined}


def _tables(source: Node) -> Iterator[Node]:
    """The tables of a FROM that are not in a subquery."""
    if source["type"] == "BASE_TABLE":
        yield source
    elif _joins_by_condition(source):
        yield from _tables(source["left"])
        yield from _tables(source["right"])
    elif source["type"] != "EMPTY":
        yield {"type": "OTHER", "table_name": "", "qualified_name": {"path": [""]}}


def _joins_by_condition(source: Node) -> bool:
    """Whether a row is joined by its own values, and not by its place or as the nearest one."""
    is_outer_or_inner = source.get("join_type") in {"INNER", "LEFT", "RIGHT", "OUTER"}
    is_by_rows = source.get("ref_type") in {"POSITIONAL", "ASOF"}
    return source["type"] == "JOIN" and is_outer_or_inner and not is_by_rows


def _name(table: Node) -> str:
    return str(table["qualified_name"]["path"][-1]).lower()


def _conjuncts(condition: Node | None) -> Iterator[Node]:
    if condition and condition["type"] == "CONJUNCTION_AND":
        for each in condition["children"]:
            yield from _conjuncts(each)
    elif condition:
        yield condition


def _bounds(
    condition: Node,
    times: Sequence[str],
    prefixes: set[tuple[str, ...]],
    evaluate: Callable[[Node], datetime | None],
) -> Bounds:
    """What a condition says about the times of a table."""

    def column(node: Node) -> str | None:
        *prefix, name = (each.lower() for each in node.get("column_names", [""]))
        return name if name in times and tuple(prefix) in prefixes else None

    if condition["type"] in {"CONJUNCTION_AND", "CONJUNCTION_OR"}:
        every = (_bounds(each, times, prefixes, evaluate) for each in condition["children"])
        return reduce(_JOINED[condition["type"]], every)
    if condition["type"] == "COMPARE_BETWEEN" and (name := column(condition["input"])):
        low = _compared("COMPARE_GREATERTHANOREQUALTO", name, evaluate(condition["lower"]))
        high = _compared("COMPARE_LESSTHANOREQUALTO", name, evaluate(condition["upper"]))
        return low.within(high)
    if condition["type"] not in _MIRRORED:
        return Bounds()
    if name := column(condition["left"]):
        return _compared(condition["type"], name, evaluate(condition["right"]))
    if name := column(condition["right"]):
        return _compared(_MIRRORED[condition["type"]], name, evaluate(condition["left"]))
    return Bounds()


def _compared(comparison: str, column: str, value: datetime | None) -> Bounds:
    """The times for which the column compares so with a value. A date has all times of its day."""
    if value is None:
        return Bounds()
    step = _DAY if column == _DATE else _MICROSECOND
    start = value.replace(hour=0, minute=0, second=0, microsecond=0) if column == _DATE else value
    try:
        return {
            "COMPARE_EQUAL": Bounds(start, start + step),
            "COMPARE_LESSTHANOREQUALTO": Bounds(None, start + step),
            "COMPARE_LESSTHAN": Bounds(None, start + step if start != value else start),
        }.get(comparison, Bounds(start))
    except OverflowError:
        return Bounds()


@dataclass(frozen=True, slots=True)
class _Constants:
    """Evaluates expressions without columns."""

    parser: duckdb.DuckDBPyConnection

    def time(self, expression: Node) -> datetime | None:
        """The time that an expression is; None if it is no constant, or none that Python has."""
        if not _is_constant(expression):
            return None
        if (written := _literal(expression)) is not None:
            return written
        cursor = self.parser.cursor()
        try:
            ((template,),) = cursor.execute("SELECT json_serialize_sql('SELECT 1')").fetchall()
            tree = json.loads(template)
            tree["statements"][0]["node"]["select_list"] = [expression]
            ((text,),) = cursor.execute(
                "SELECT json_deserialize_sql(?)", [json.dumps(tree)]
            ).fetchall()
            value = f"CAST(({text.removeprefix('SELECT ')}) AS TIMESTAMPTZ)"
            ((us,),) = cursor.execute(f"SELECT epoch_us({value})").fetchall()
            return time_of(us)
        except duckdb.Error:
            return None


def _literal(expression: Node) -> datetime | None:
    """The time of a literal as quotaflow writes it: timestamp '2026-01-01T00:00:00.000000Z'."""
    match expression:
        case {
            "type": "OPERATOR_CAST",
            "child": {"literal": {"kind": "STRING", "text": str(text)}},
            "type_expr": {"type_name": "TIMESTAMP" | "TIMESTAMPTZ"},
        } if _UTC.fullmatch(text):
            with suppress(ValueError):
                return datetime.fromisoformat(text)
    return None


def _reads_the_clock(node: Any) -> bool:
    if isinstance(node, list):
        return any(map(_reads_the_clock, node))
    if not isinstance(node, dict):
        return False
    return node.get("function_name") in _CLOCK or any(map(_reads_the_clock, node.values()))


def _is_constant(node: Any) -> bool:
    if isinstance(node, list):
        return all(map(_is_constant, node))
    if not isinstance(node, dict):
        return True
    match node.get("class"):
        case "COLUMN_REF" | "SUBQUERY" | "PARAMETER":
            return False
        case "FUNCTION" if node["function_name"].lower() not in _CONSTANT:
            return False
    return all(map(_is_constant, node.values()))
