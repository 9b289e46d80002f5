"""Which texts the local engine may run: queries of tables and views, and nothing else."""

import pytest

from quotaflow.pipelines.errors import ConfigError, QueryError, WrongQueryError
from quotaflow.pipelines.warehouse.query_check import checked

DECLARED = frozenset({"requests", "topics", "current_topics"})

NO_QUERIES = (
    *(
        "",
        ";",
        "-- SELECT 1",
        "/* x */",
        "selected",
        "drop",
        "SELECT 1; SELECT 2",
        "SELECT 1;;SET x=1",
    ),
    *("COPY requests TO '/tmp/x'", "COPY (SELECT 1) TO '/tmp/x' (FORMAT parquet)"),
    *("COPY requests FROM '/tmp/x'", "EXPORT DATABASE '/tmp/x'", "IMPORT DATABASE '/tmp/x'"),
    *("CREATE TABLE x AS SELECT 1", "CREATE VIEW x AS SELECT 1", "CREATE MACRO m() AS 1"),
    *("CREATE OR REPLACE TEMP TABLE requests AS SELECT 1", "CREATE SECRET s (TYPE s3)"),
    *("DROP TABLE requests", "ALTER TABLE requests RENAME TO x", "TRUNCATE requests"),
    *("INSERT INTO requests SELECT 1", "UPDATE requests SET api = 1", "DELETE FROM requests"),
    "MERGE INTO requests USING topics ON true WHEN MATCHED THEN DELETE",
    "INSERT INTO requests SELECT 1 RETURNING *",
    "WITH x AS (INSERT INTO requests SELECT 1 RETURNING *) SELECT * FROM x",
    "WITH x AS (DELETE FROM requests RETURNING *) SELECT * FROM x",
    "WITH x AS (UPDATE requests SET api = 'a' RETURNING *) SELECT * FROM x",
    "SELECT * FROM (WITH x AS (DELETE FROM requests RETURNING *) SELECT * FROM x)",
    *("SET threads = 1", "SET GLOBAL lock_configuration = false", "RESET ALL", "USE memory"),
    *("PRAGMA database_list", "PRAGMA enable_profiling", "CALL pragma_version()"),
    *("ATTACH '/tmp/x' AS x", "DETACH memory", "INSTALL httpfs", "LOAD httpfs", "FORCE INSTALL x"),
    *("BEGIN", "COMMIT", "CHECKPOINT", "VACUUM", "ANALYZE", "PREPARE p AS SELECT 1", "EXECUTE p"),
    "COMMENT ON TABLE requests IS 'x'",
    "PIVOT requests ON api USING count(*)",
    *("EXPLAIN ANALYZE SELECT 1", "EXPLAIN (ANALYZE) SELECT 1", "EXPLAIN COPY (SELECT 1) TO 'x'"),
    *("EXPLAIN EXPLAIN SELECT 1", "EXPLAIN DELETE FROM requests", "EXPLAIN SELECT 1; DROP TABLE x"),
    *(
        f"SELECT * FROM {function}"
        for function in (
            *("read_csv('/etc/passwd')", "read_text('/etc/passwd')", "read_blob('x')"),
            *("read_parquet('x')", "parquet_scan('x')", "parquet_metadata('x')", "read_json('x')"),
            *("glob('/*')", "sniff_csv('/etc/passwd')", "read_duckdb('x')", "READ_TEXT('/etc/x')"),
            *("query('DROP TABLE requests')", "query_table('requests')"),
            *("json_execute_serialized_sql('x')", "python_map_function('x')", "arrow_scan(1,2,3)"),
            *("duckdb_settings()", "duckdb_secrets()", "pragma_database_size()", "checkpoint()"),
            *("enable_logging()", "test_all_types()", "system.main.duckdb_settings()"),
        )
    ),
    "SELECT (SELECT content FROM read_text('/etc/passwd'))",
    "SELECT * FROM requests WHERE api IN (SELECT content FROM read_text('/etc/passwd'))",
    "SELECT * FROM (DESCRIBE SELECT * FROM read_text('x'))",
    "EXPLAIN SELECT * FROM read_text('/etc/passwd')",
    *("SELECT current_setting('temp_directory')", "SELECT getvariable('x')", "SELECT nextval('x')"),
    *("SELECT write_log('x')", "SELECT json_serialize_sql('SELECT 1')", "SELECT pg_sleep(1000)"),
    *("SELECT * FROM pg_catalog.pg_settings", "SELECT * FROM system.main.duckdb_databases"),
    *("SELECT * FROM memory.main.requests", "SELECT * FROM other.requests"),
)


@pytest.mark.parametrize(
    "sql",
    [
        *(
            "SHOW memory_limit",
            "SHOW temp_directory",
            'SHOW "secret_directory"',
            "SHOW search_path",
        ),
        *("SHOW search_path", "SHOW DATABASES", "SHOW VARIABLES", "SHOW TABLES FROM memory"),
        "SELECT * FROM (SHOW temp_directory)",
    ],
)
def test_show_prints_no_setting(sql: str) -> None:
    with pytest.raises(ConfigError, match="is not allowed"):
        checked(sql, DECLARED)


def test_show_may_name_a_table() -> None:
    assert checked("SHOW requests", DECLARED).names == {"requests"}


def test_a_deep_query_is_refused() -> None:
    with pytest.raises(WrongQueryError, match="nested too deep"):
        checked(f"SELECT {'[' * 900}1{']' * 900}", DECLARED)


def refusal(sql: str) -> str | None:
    try:
        checked(sql, DECLARED)
    except (ConfigError, QueryError) as error:
        return str(error)
    return None


def test_what_does_more_than_to_read_tables_is_refused_in_one_line() -> None:
    refusals = {sql: refusal(sql) for sql in NO_QUERIES}
    assert {sql: text for sql, text in refusals.items() if text is None or "\n" in text} == {}


@pytest.mark.parametrize(
    "sql",
    [
        *("SELECT * FROM '/etc/passwd'", 'SELECT * FROM "/etc/passwd"', "FROM 'x.parquet'"),
        *("SELECT * FROM pg_settings", "SELECT * FROM duckdb_settings", "SUMMARIZE 'x.csv'"),
        *("SELECT * FROM sqlite_master", "DESCRIBE 'x.parquet'", "SELECT * FROM __file__"),
        "WITH x AS (SELECT 1) SELECT * FROM y",
    ],
)
def test_a_name_that_is_no_table_is_never_that_of_a_file(sql: str) -> None:
    with pytest.raises(QueryError, match="no table"):
        checked(sql, DECLARED)


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT 1", set()),
        (" -- why\n/* x */ (SELECT 1) ;", set()),
        ("VALUES (1), (2)", set()),
        ("SELECT * FROM requests", {"requests"}),
        ("FROM Requests SELECT api", {"requests"}),
        ("TABLE topics", {"topics"}),
        ("SELECT 'read_text(', \"delete from\" FROM (SELECT 1 AS \"delete from\")", set()),
        ("SELECT * FROM requests WHERE api = 'topics' -- topics", {"requests"}),
        ("SELECT (SELECT max(a) FROM current_topics) FROM topics", {"topics", "current_topics"}),
        ("SELECT * FROM requests UNION ALL SELECT * FROM topics", {"requests", "topics"}),
        ("WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT 2 FROM r) SELECT * FROM r", set()),
        ("WITH x AS (FROM requests) SELECT * FROM x, topics", {"requests", "topics"}),
        ("SELECT * FROM range(3), generate_series(1, 2), unnest([1])", set()),
        ("PIVOT requests ON api IN ('FETCH') USING count(*)", {"requests"}),
        ("UNPIVOT (SELECT 1 AS a, 2 AS b) ON a, b", set()),
        ("DESCRIBE requests", {"requests"}),
        ("DESCRIBE SELECT * FROM topics", {"topics"}),
        ("SUMMARIZE requests", {"requests"}),
        ("EXPLAIN SELECT * FROM requests", {"requests"}),
        ("explain\n(select * from topics)", {"topics"}),
    ],
)  # fmt: skip
def test_queries_are_known_with_the_tables_that_they_read(sql: str, names: set[str]) -> None:
    query = checked(sql, DECLARED)
    assert (query.names, query.perhaps, query.describes_all) == (names, set(), False)


@pytest.mark.parametrize(
    "sql",
    [
        *("SHOW TABLES", "SHOW ALL TABLES", "SHOW", "DESCRIBE", "SELECT * FROM (SHOW TABLES)"),
        "SELECT table_name FROM information_schema.tables",
        "SELECT * FROM INFORMATION_SCHEMA.columns WHERE table_name = 'requests'",
    ],
)
def test_some_ask_which_tables_there_are(sql: str) -> None:
    assert checked(sql, DECLARED).describes_all


def test_a_cte_may_have_the_name_of_a_table() -> None:
    query = checked("WITH requests AS (SELECT * FROM requests) SELECT * FROM requests", DECLARED)
    assert (query.names, query.perhaps) == (set(), {"requests"})
