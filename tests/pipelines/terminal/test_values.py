"""Values as text."""

import json
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from quotaflow.pipelines.terminal import values


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


@pytest.mark.parametrize("number", [0, 7, -(2**53), 2**53 - 1, 2**63 - 1, -(2**63)])
def test_no_integer_is_rounded_by_a_reader_of_json(number: int) -> None:
    batch = pa.RecordBatch.from_pydict(
        {"series_id": pa.array([number]), "n": pa.array([number]), "list": pa.array([[number]])}
    )
    (row,) = values.rows([batch])
    as_doubles = json.loads(values.json_line(row), parse_int=float)
    assert as_doubles["series_id"] == str(number)
    assert int(as_doubles["n"]) == int(as_doubles["list"][0]) == number
