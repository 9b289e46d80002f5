"""Tests as tables: a case is a row that begins with its name."""

from typing import Any

import pytest


def cases(names: str | tuple[str, ...], *rows: tuple[Any, ...]) -> pytest.MarkDecorator:
    """Run a test once for each row: a case's name, then a value for each of the test's `names`.

    Two cases may not have one name, so that a failure leads to one row.
    """
    ids = [row[0] for row in rows]
    assert len(set(ids)) == len(ids), f"a name stands twice: {ids}"
    return pytest.mark.parametrize(names, [pytest.param(*row[1:], id=row[0]) for row in rows])
