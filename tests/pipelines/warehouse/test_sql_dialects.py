"""SQL of Spark means the same in DuckDB, and names the tables that it reads."""

import duckdb

from quotaflow.pipelines.warehouse.sql_dialects import in_duckdb, tables_in
from quotaflow.pipelines.warehouse.views import load, sources

from ...cases import cases


@cases(
    ("time", "millis"),
    ("down, not to the nearest", "2026-01-01 00:00:00.557965", 1_767_225_600_557),
    ("whole", "2026-01-01 00:00:00.557", 1_767_225_600_557),
    ("down before 1970 too", "1969-12-31 23:59:59.9995", -1),
)
def test_milliseconds_are_rounded_down_as_in_spark(time: str, millis: int) -> None:
    sql = in_duckdb(f"SELECT unix_millis(TIMESTAMP '{time}') AS ms")
    # Spark's TIMESTAMP has a zone.
    assert duckdb.sql(sql.replace("TIMESTAMPTZ", "TIMESTAMP")).fetchall() == [(millis,)]


def test_the_length_of_a_list_is_what_duckdb_before_2_takes() -> None:
    assert in_duckdb("SELECT cardinality(array(1, 2)) AS n") == "SELECT\n  LEN([1, 2]) AS n"


@cases(
    ("sql", "names"),
    ("not a column", "SELECT requests FROM traffic", {"traffic"}),
    ("not a WITH", "WITH a AS (SELECT 1 FROM b) SELECT 2 FROM a", {"b"}),
    ("nested", "SELECT 1 FROM a AS c JOIN (SELECT 2 FROM b) AS d", {"a", "b"}),
)
def test_a_query_names_what_it_reads(sql: str, names: set[str]) -> None:
    assert tables_in(sql) == names


def test_a_table_within_a_time_keeps_its_name_in_the_query() -> None:
    sql = "SELECT requests.principal FROM requests JOIN traffic AS t ON t.x = requests.x"
    assert " ".join(in_duckdb(sql, frozenset({"requests", "traffic"})).split()) == (
        'SELECT requests.principal FROM "requests within" AS requests '
        'JOIN "traffic within" AS t ON t.x = requests.x'
    )


def test_the_sources_of_a_view_are_the_tables_that_its_query_reads() -> None:
    # Without names of its WITH clauses: no such name may be that of a source.
    views = load().values()
    assert {v.name: set(sources(v)) for v in views} == {v.name: tables_in(v.sql) for v in views}
