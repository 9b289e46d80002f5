"""Each function means the same in DuckDB and in Spark, also of nulls; others are refused."""

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from sqlglot import exp, parse_one

from quotaflow.pipelines.errors import WrongQueryError
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse import sql_dialects, views
from quotaflow.pipelines.warehouse.python_times import rows_of
from quotaflow.pipelines.warehouse.sql_dialects import ALIKE, function_name, in_duckdb, in_spark

from ...cases import cases

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

TIMES = ("2026-11-21T12:34:56.789012", "1969-12-31T23:59:59.999500")
ROWS_OF_DUCKDB = f"""
SELECT * FROM (VALUES
    (1, 1, 3, 1.5e0, 'Ab,c', TIMESTAMPTZ '{TIMES[0]}Z', [2, NULL, 1], true, '7'),
    (2, 1, NULL, 9.5e0, 'b', TIMESTAMPTZ '{TIMES[1]}Z', [3], false, 'x'),
    (3, 1, -3, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, 2, -7, -2.5e0, '', TIMESTAMPTZ '{TIMES[0]}Z', [5, 5], NULL, ' 8'),
    (5, 3, NULL, 1e0, NULL, NULL, [NULL], NULL, NULL)
) AS given(id, g, x, y, s, t, l, b, n)
"""
ROWS_OF_SPARK = in_spark(ROWS_OF_DUCKDB)

OF_ROWS = """
abs(x) | greatest(x, 1) | least(x, y) | coalesce(x, 0) | nullif(x, 3) | floor(y) | ceil(y)
round(y) | lower(s) | left(s, 1) | split_part(s, ',', 2) | split_part(s, ',', 5) | length(s)
substring(s, 2, 2) | replace(s, 'b', 'x') | lpad(s, 3, '0') | trim(s) | concat(s, 'x')
s || 'x' | s LIKE 'A%'
TRY_CAST(n AS DOUBLE) | CAST(x AS STRING) | CASE WHEN b THEN 1 END | x IS DISTINCT FROM 3 | x % 2
unix_micros(t) | unix_millis(t) | date_trunc('hour', t) | t + INTERVAL '1' HOUR
row_number() OVER (PARTITION BY g ORDER BY x, id) | rank() OVER (ORDER BY y) | 7 / x
dense_rank() OVER (ORDER BY y DESC) | lag(x) OVER (ORDER BY id) | lead(x) OVER (ORDER BY id)
first_value(x) OVER (PARTITION BY g ORDER BY y) | max(x) OVER (PARTITION BY g ORDER BY id)
x IN (3, 4) | b AND x > 1 | b OR x > 1 | exp(y) | power(2e0, x) | chr(92)
"""
"""Of both: an expression for each row."""
OF_GROUPS = """
max_by(x, y) | max_by(y, x) | min_by(x, y) | min_by(s, x) | count(*) | count(x) | count(DISTINCT y)
sum(x) | avg(x) | min(s) | max(s) | bool_or(b) | bool_and(b) | sum(x) FILTER (WHERE b)
max_by(x, y) FILTER (WHERE b) | CAST(count(*) AS INT)
"""
ROWS_OF_ONE = {
    "duckdb": """
x // 2 | starts_with(s, 'A') | contains(s, 'b') | instr(s, 'b') | cardinality(l)
list_transform(l, lambda e: e + 1) | array_join(['a', NULL, 'c'], ',') | epoch_us(t)
x / 2 | if(b, 1, 2) | regexp_matches(s, 'b') | now() > t | [1, 2] | strpos(s, 'b')
CAST('7' AS INT) | CAST(floor(y) AS BIGINT)
CAST(b IS NULL AS INT) | substring(s, instr(s, 'b') + 1)
""",
    "spark": """
sqrt(abs(y)) | position('b' IN s) | s RLIKE 'b' | regexp_replace(s, '(b)', '<$1>')
regexp_extract(s, '([a-z])', 1) | lower(hex(s)) | cardinality(l) | array_contains(array(1, id), 2)
array_max(l) | array_join(array_sort(array('b', 'a')), ',')
named_struct('k', x).k | hex(s) | chr(65) | concat_ws(',', s, 'x', NULL) | repeat(s, 2) | md5(s)
isnan(y) | levenshtein(s, 'Ac') | map_keys(map('a', 1)) | translate(s, 'b', 'z') | slice(l, 1, 1)
transform(l, e -> e + 1) | filter(l, e -> e > 1) | array_except(array(1, 2), array(2))
sequence(1, 3) | last_value(x) IGNORE NULLS OVER (PARTITION BY g ORDER BY id)
split('a,b', ',')[1] | x DIV 2
size(split('a,b', ',')) | substr(s, -1, 1) | date_trunc('minute', t) | if(b, 1, 2) | ceil(y * 2)
""",
}
GROUPS_OF_ONE = {
    "duckdb": """
quantile_cont(x, 0.9) | quantile_cont(y, 0.5) | string_agg(s, ';' ORDER BY s)
CAST(sum(y) AS BIGINT) | CAST(sum(x) AS BIGINT) | CAST(sum(x * 0.5) AS BIGINT)
CAST(sum(y) FILTER (WHERE id = 4) AS INT) | TRY_CAST(sum(y + 1e0) AS INT)
""",
    "spark": """
array_sort(array_agg(x)) | array_sort(array_agg(DISTINCT x)) | array_sort(collect_list(y))
median(x) | array_sort(collect_set(y)) | cardinality(array_agg(x)) | stddev_samp(y)
regr_slope(x, y)
array_sort(collect_list(named_struct('k', id)))
""",
}
PLAIN = {"grouping", "exists", "explode", "currenttimestamp", "and", "or"}


def parts(text: str) -> list[str]:
    """The expressions of a table."""
    return [each.strip() for line in text.strip().splitlines() for each in line.split(" | ")]


def queries(dialect: str) -> list[str]:
    """One of each row, and one of each group."""
    rows = ROWS_OF_SPARK if dialect == "spark" else ROWS_OF_DUCKDB
    of_rows, of_groups = (
        ", ".join(f"{each} AS v{i}" for i, each in enumerate(parts(both) + parts(one[dialect])))
        for both, one in ((OF_ROWS, ROWS_OF_ONE), (OF_GROUPS, GROUPS_OF_ONE))
    )
    return [
        f"SELECT id, {of_rows} FROM ({rows}) AS r ORDER BY id",
        f"SELECT g, {of_groups} FROM ({rows}) AS r GROUP BY g ORDER BY g",
    ]


def plain(value: Any) -> Any:
    """A value without what engines have as types of their own."""
    match value:
        case Decimal() | float() | int() if not isinstance(value, bool):
            return None if math.isnan(value) else round(float(value), 9)
        case list():
            return [plain(each) for each in value]
        case dict():
            return {name: plain(each) for name, each in value.items()}
    return value


def shown(sql: str, answer: "pa.Table") -> dict[str, list[Any]]:
    """The values of each expression, by its text."""
    columns = {name: [plain(row[name]) for row in rows_of(answer)] for name in answer.column_names}
    texts = sql[7:].split(" FROM (", maxsplit=1)[0]
    named = dict(zip(texts.split(" AS v")[:-1], list(columns)[1:], strict=True))
    return {text: columns[name] for text, name in named.items()}


@pytest.fixture
def engine() -> duckdb.DuckDBPyConnection:
    """DuckDB as readers have it."""
    from quotaflow.pipelines.warehouse.local_database import MACROS  # noqa: PLC0415
    from quotaflow.udfs.engine.connections import connect  # noqa: PLC0415

    connection = connect()
    connection.execute(MACROS)
    return connection


@pytest.mark.spark
@pytest.mark.parametrize("i", [0, 1], ids=["rows", "groups"])
@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_functions_mean_the_same(
    spark: "SparkSession", engine: duckdb.DuckDBPyConnection, dialect: str, i: int
) -> None:
    sql = queries(dialect)[i]
    of_spark = sql if dialect == "spark" else in_spark(sql)
    of_duckdb = sql if dialect == "duckdb" else in_duckdb(sql)
    expected = shown(sql, engine.sql(of_duckdb).to_arrow_table())
    assert shown(sql, spark.sql(of_spark).toArrow()) == expected


def functions(sql: str, dialect: Any) -> set[str]:
    tree = parse_one(sql, read=dialect)
    return {function_name(node) for node in tree.find_all(exp.Func)}


def test_each_function_that_is_translated_for_spark_is_asked_of_both() -> None:
    covered = set().union(*(functions(sql, "duckdb") for sql in queries("duckdb")))
    assert covered | PLAIN >= ALIKE


def test_each_function_of_views_and_answers_is_asked_of_both() -> None:
    texts = [view.sql for view in views.load().values()]
    texts += [text for answer in ANSWERS for text in answer.texts]
    covered = set().union(*(functions(sql, sql_dialects._spark()) for sql in queries("spark")))
    used = set().union(*(functions(text, sql_dialects._spark()) for text in texts))
    assert used - covered - PLAIN == set()


@cases(
    "expression",
    ("a list in an order", "list(x ORDER BY y)"),
    ("a list with nulls", "array_agg(x)"),
    ("seconds with a fraction", "epoch(t)"),
    ("logarithms of another base", "log(y)"),
    ("days that began", "date_diff('day', t, t)"),
    ("a place in a list", "list_slice(l, 2, 3)"),
    ("what Spark lacks", "histogram(x)"),
    ("a letter beyond ASCII", "chr(8364)"),
    ("a root of what may be negative", "sqrt(y)"),
    ("a fraction as a whole number", "CAST(1.7 AS INT)"),
    ("what may have a fraction", "TRY_CAST(y AS BIGINT)"),
    ("a place before the first", "substring(s, 0, 2)"),
    ("a place that may be before the first", "substring(s, id, 2)"),
    ("a place from the end", "substring(s, -9, 2)"),
)
def test_what_may_differ_is_refused(expression: str) -> None:
    with pytest.raises(WrongQueryError, match="may mean something else in Spark"):
        in_spark(f"SELECT {expression} FROM requests")
