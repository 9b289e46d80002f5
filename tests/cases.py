"""Tests as tables: a case is a row that begins with its name."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest


def cases(
    names: str | tuple[str, ...], *rows: tuple[Any, ...], more: Sequence[tuple[Any, ...]] = ()
) -> pytest.MarkDecorator:
    """Run a test once for each row: a case's name, then a value for each of the test's `names`.

    Two cases may not have one name, so that a failure leads to one row. `more` are rows that only
    `make faults` runs, because others prove the same rule.
    """
    ids = [row[0] for row in (*rows, *more)]
    assert len(set(ids)) == len(ids), f"a name stands twice: {ids}"
    params = [pytest.param(*row[1:], id=row[0]) for row in rows]
    return pytest.mark.parametrize(names, [*params, *map(_of_faults, more)])


def first_of(values: Iterable[Any], count: int = 1) -> list[Any]:
    """The same of single values, of which `make test` runs so many."""
    rows = [(None, value) for value in values]
    return [*(value for _, value in rows[:count]), *map(_of_faults, rows[count:])]


def _of_faults(row: tuple[Any, ...]) -> Any:
    return pytest.param(*row[1:], id=row[0], marks=pytest.mark.faults)


def grouped(outcomes: Mapping[Any, Mapping[str, Any]]) -> list[tuple[str, Any, Any]]:
    """Rows for `cases`, from cases by what they lead to: a name, what is given, the outcome."""
    return [
        (case, given, outcome)
        for outcome, alike in outcomes.items()
        for case, given in alike.items()
    ]
