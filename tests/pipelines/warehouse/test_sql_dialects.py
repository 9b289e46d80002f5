"""SQL of Spark means the same in DuckDB, and names the tables that it reads."""

import duckdb
import pytest

from quotaflow.pipelines.warehouse.sql_dialects import in_duckdb, tables_in


@pytest.mark.parametrize(
    ("time", "millis"),
    [
        pytest.param(
            "2026-01-01 00:00:00.557965", 1_767_225_600_557, id="down, not to the nearest"
        ),
        pytest.param("2026-01-01 00:00:00.557", 1_767_225_600_557, id="whole"),
        pytest.param("1969-12-31 23:59:59.9995", -1, id="down before 1970 too"),
    ],
)
def test_milliseconds_are_rounded_down_as_in_spark(time: str, millis: int) -> None:
    sql = in_duckdb(f"SELECT unix_millis(TIMESTAMP '{time}') AS ms")
    # Spark's TIMESTAMP has a zone.
    assert duckdb.sql(sql.replace("TIMESTAMPTZ", "TIMESTAMP")).fetchall() == [(millis,)]


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        pytest.param("SELECT requests FROM traffic", {"traffic"}, id="not a column"),
        pytest.param("WITH a AS (SELECT 1 FROM b) SELECT 2 FROM a", {"b"}, id="not a WITH"),
        pytest.param("SELECT 1 FROM a AS c JOIN (SELECT 2 FROM b) AS d", {"a", "b"}, id="nested"),
    ],
)
def test_a_query_names_what_it_reads(sql: str, names: set[str]) -> None:
    assert tables_in(sql) == names
