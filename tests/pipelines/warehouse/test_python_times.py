"""Arrow rows in Python: their times are in UTC, whole, and need no pandas."""

from datetime import UTC, datetime

import pyarrow as pa

from quotaflow.pipelines.warehouse.python_times import rows_of

from ...own_process import printed_by

NOON = datetime(2026, 11, 21, 12, 0, 0, 557_965, tzinfo=UTC)


def test_rows_have_times_in_utc_and_other_values_unchanged() -> None:
    table = pa.table(
        {
            "zoned": pa.array([NOON, None], pa.timestamp("us", "Europe/Berlin")),
            "nanoseconds": pa.array([NOON, NOON], pa.timestamp("ns", "UTC")),
            "listed": [[{"a": 1}], None],
        }
    )
    first, second = rows_of(table)
    assert first == {
        "zoned": NOON,
        "nanoseconds": NOON,
        "listed": [{"a": 1}],
    }
    assert first["zoned"].tzinfo is first["nanoseconds"].tzinfo is UTC
    assert second == {"zoned": None, "nanoseconds": NOON, "listed": None}
    assert rows_of(table.slice(0, 0)) == []


def test_a_time_out_of_range_is_none() -> None:
    far = pa.table({"time": pa.array([2**62, 0], pa.timestamp("us", "UTC"))})
    assert [row["time"] for row in rows_of(far)] == [
        None,
        datetime(1970, 1, 1, tzinfo=UTC),
    ]


def test_times_import_no_pandas() -> None:
    code = (
        "import sys, duckdb\n"
        "from quotaflow.pipelines.warehouse.python_times import rows_of\n"
        "answer = duckdb.sql(\"SET TimeZone = 'UTC'; SELECT to_timestamp(0) AS time\")\n"
        "rows = rows_of(answer.to_arrow_table())\n"
        "print(rows[0]['time'], 'pandas' in sys.modules)"
    )
    assert printed_by(code) == "1970-01-01 00:00:00+00:00 False\n"
