"""Lookbacks of answers are as long as their texts need: no row from before them changes a row."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from quotaflow.pipelines.results.answers.answer import Answer
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.results.answers.source import QUIET
from quotaflow.schemas.answer_head import Lookback

from ....rows import Row
from ....schemas.views.filled_views import FILLED
from ....schemas.views.memory_tables import MemoryTables
from ..splits import sorted_rows

BY_NAME = {answer.name: answer for answer in ANSWERS}
LOOKING_BACK = [
    # All others of an answer are one case too.
    pytest.param(answer.name, table, marks=[] if lookback.is_memory else pytest.mark.faults)
    for answer in ANSWERS
    for table, lookback in answer.lookbacks.items()
]
SETTINGS = {
    row["setting"]: float(row["setting_value"])
    for row in FILLED["settings"]
    if row["setting"] in {each.setting for a in ANSWERS for each in a.lookbacks.values()}
}
_TICK = timedelta(seconds=1)
_FILLED = MemoryTables()
for _name, _rows in FILLED.items():
    _FILLED.put(_name, _rows)


def with_old_rows(lookbacks: Mapping[str, Lookback]) -> MemoryTables:
    """Filled tables, of which these have all their rows again from right before their lookback."""
    # The others are the same tables each time, so what was computed from them alone is kept.
    tables = MemoryTables(dict(_FILLED.content))
    for name, lookback in lookbacks.items():
        earlier = lookback.length(SETTINGS) + QUIET + _TICK
        rows = FILLED.get(name, [])
        tables.put(name, [*rows, *(moved(row, earlier) for row in rows)])
    return tables


def moved(row: Row, earlier: timedelta) -> Row:
    """A row with all its times so much earlier."""
    return {
        column: value - earlier if isinstance(value, datetime) else value
        for column, value in row.items()
    }


def rows_of(tables: MemoryTables, answer: Answer) -> list[str]:
    return sorted_rows(tables.compute(answer).to_pylist())


@pytest.mark.parametrize(("name", "table"), LOOKING_BACK)
def test_rows_from_before_the_lookback_change_an_answer_only_if_it_remembers_no_more(
    name: str, table: str
) -> None:
    answer = BY_NAME[name]
    tables = with_old_rows({table: answer.lookbacks[table]})
    is_same = rows_of(tables, answer) == rows_of(tables, replace(answer, lookbacks={}))
    assert is_same is not answer.lookbacks[table].is_memory


@pytest.mark.parametrize("name", [answer.name for answer in ANSWERS if answer.lookbacks])
def test_rows_from_before_all_lookbacks_change_no_answer_that_has_no_memory(name: str) -> None:
    answer = BY_NAME[name]
    memory = {table: each for table, each in answer.lookbacks.items() if each.is_memory}
    others = {table: each for table, each in answer.lookbacks.items() if not each.is_memory}
    tables = with_old_rows(others)
    assert rows_of(tables, answer) == rows_of(tables, replace(answer, lookbacks=memory))
