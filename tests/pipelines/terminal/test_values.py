"""Values as text."""

import json
from datetime import UTC, date, datetime

import pytest

from quotaflow.pipelines.terminal import values


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.4, "0 s"), (119, "119 s"), (120, "2 min"), (7_200, "2 h"), (200_000, "2 d")],
)
def test_a_duration_has_one_unit(seconds: float, expected: str) -> None:
    assert values.duration(seconds) == expected


def test_a_python_value_becomes_one_of_json() -> None:
    row = {
        "time": datetime(2026, 11, 21, 12, tzinfo=UTC),
        "date": date(2026, 11, 21),
        "nan": float("nan"),
        "bytes": b"\xff",
        "nested": [{"n": 1}, (None, True)],
    }
    assert json.loads(values.json_line(values.plain(row))) == {
        "time": "2026-11-21T12:00:00.000000Z",
        "date": "2026-11-21",
        "nan": "NaN",
        "bytes": "/w==",
        "nested": [{"n": 1}, [None, True]],
    }
