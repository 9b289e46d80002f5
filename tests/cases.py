"""Tests as tables: a case is a row that begins with its name."""

from collections.abc import Mapping
from typing import Any

import pytest


def cases(names: str | tuple[str, ...], *rows: tuple[Any, ...]) -> pytest.MarkDecorator:
    """Run a test once for each row: a case's name, then a value for each of the test's `names`.

    Two cases may not have one name, so that a failure leads to one row.
    """
    ids = [row[0] for row in rows]
    assert len(set(ids)) == len(ids), f"a name stands twice: {ids}"
    return pytest.mark.parametrize(names, [pytest.param(*row[1:], id=row[0]) for row in rows])


def grouped(outcomes: Mapping[Any, Mapping[str, Any]]) -> list[tuple[str, Any, Any]]:
    """Rows for `cases`, from cases by what they lead to: a name, what is given, the outcome."""
    return [
        (case, given, outcome)
        for outcome, alike in outcomes.items()
        for case, given in alike.items()
    ]
