"""The SQL texts of results, and the shared views and macros that each text reads."""

import re
from collections.abc import Mapping
from functools import cache
from graphlib import TopologicalSorter
from importlib.resources import files

from quotaflow.schemas.table import Table
from quotaflow.udfs.engine.rule import Rule, Walk

_RESULTS = "quotaflow.pipelines.results"
_SHARED = "shared"
_COMMENT_OR_TEXT = re.compile(r"--[^\n]*|'(?:[^']|'')*'")


def rule(name: str, sql: str, table: Table, walks: tuple[Walk, ...]) -> Rule:
    """The rule that fills a table, with the shared views and macros that its text reads."""
    return Rule(
        name=name,
        sql=sql,
        schema=table.arrow,
        time=table.time,
        macros=_macros(),
        views=_views_of([sql, *(walk.sql for walk in walks)]),
        walks=walks,
    )


@cache
def read(path: str) -> str:
    """One text below pipelines/results."""
    return files(_RESULTS).joinpath(path).read_text(encoding="utf-8")


def words(sql: str) -> set[str]:
    """The names in a text, without those in comments and in strings."""
    return set(re.findall(r"\w+", _COMMENT_OR_TEXT.sub(" ", sql)))


def texts_of(rule: Rule) -> list[str]:
    """All SQL of a rule, with the shared macros that it names."""
    return _with_macros([rule.sql, *rule.views.values(), *(walk.sql for walk in rule.walks)])


@cache
def shared_views() -> Mapping[str, str]:
    """Every view of results/shared by name, each after the views that it reads."""
    folder = files(_RESULTS).joinpath(_SHARED)
    texts = {
        file.name.removesuffix(".sql"): file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith(".sql") and file.name != "macros.sql"
    }
    reads = {name: (words(sql) & set(texts)) - {name} for name, sql in texts.items()}
    return {name: texts[name] for name in TopologicalSorter(reads).static_order()}


def _views_of(texts: list[str]) -> dict[str, str]:
    views = shared_views()
    needed = set[str]().union(*map(words, texts))
    for name in reversed(list(views)):
        if name in needed:
            needed |= words(views[name])
    return {name: sql for name, sql in views.items() if name in needed}


def _with_macros(sql: list[str]) -> list[str]:
    named = set[str]().union(*map(words, sql))
    missing = [
        text for name, text in _texts_of_macros().items() if name in named and text not in sql
    ]
    return _with_macros([*sql, *missing]) if missing else sql


@cache
def _texts_of_macros() -> Mapping[str, str]:
    _, *parts = re.split(r"^CREATE MACRO (\w+)", _macros(), flags=re.M)
    return dict(zip(parts[::2], parts[1::2], strict=True))


@cache
def _macros() -> str:
    return read(f"{_SHARED}/macros.sql")
