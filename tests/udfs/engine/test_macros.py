"""Words that every rule may use: null, casts and times as the tables mean them."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from quotaflow.udfs.engine.database import Database, opened


def naive(*parts: int) -> datetime:
    """A time as DuckDB gives a TIMESTAMP: without a zone."""
    return datetime(*parts, tzinfo=UTC).replace(tzinfo=None)  # type: ignore[misc, arg-type]


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with opened({}) as database:
        yield database


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("weight_of(NULL)", 1),
        ("weight_of(3.0)", 3),
        pytest.param("weight_of(2.6)", 2, id="a weight is cut, not rounded"),
        ("int_or_null('12')", 12),
        ("int_or_null(' -7 ')", -7),
        *(
            (f"int_or_null('{text}')", None)
            for text in ["1e3", "0x10", "1.5", "1_000", "", "x", "9999999999"]
        ),
        ("bigint_or_null('9999999999')", 9_999_999_999),
        ("json_int('4'::JSON)", 4),
        *((f"json_int('{text}'::JSON)", None) for text in ['"4"', "4.0", "4.7", "true", "null"]),
        ("json_int('99999999999'::JSON)", None),
        ("json_bigint('99999999999'::JSON)", 99_999_999_999),
        ("json_or_null('{\"a\": 1}') ->> 'a'", "1"),
        *((f"json_or_null('{text}')", None) for text in ["nonsense", '{"a": ', ""]),
        ("ratio(1, 0)", None),
        ("ratio(1.0::DOUBLE, 0.0::DOUBLE)", None),
        ("ratio(3, 2)", 1.5),
        ("distinct_of(['b', 'a', 'b'])", ["b", "a"]),
        ("epoch_seconds(TIMESTAMP '1969-12-31 23:59:59.5')", -1),
        ("epoch_millis(TIMESTAMP '1970-01-01 00:00:01.0015')", 1_001),
        ("floored(TIMESTAMP '2026-11-21 12:00:59.9', 60)", naive(2026, 11, 21, 12)),
        ("from_seconds(60)", naive(1970, 1, 1, 0, 1)),
        ("from_millis(1500)", naive(1970, 1, 1, 0, 0, 1, 500_000)),
        ("since_of(TIMESTAMP '2026-01-01', TIMESTAMP '2026-01-01')", naive(1970, 1, 1)),
        ("since_of(TIMESTAMP '2026-01-02', TIMESTAMP '2026-01-01')", naive(2026, 1, 2)),
    ],
)
def test_a_word(database: Database, sql: str, expected: object) -> None:
    (row,) = database.connection.sql(f"SELECT {sql} AS value").to_arrow_table().to_pylist()
    value = row["value"]
    if isinstance(expected, float) and isinstance(value, float):
        assert math.isclose(value, expected)
    else:
        assert value == expected


@pytest.mark.parametrize("period_s", [1, 11, 60, 3_600])
def test_buckets_are_those_of_the_driver(database: Database, period_s: int) -> None:
    time = datetime(2026, 11, 21, 12, 34, 56, 789_000, tzinfo=UTC)
    sql = f"SELECT floored(TIMESTAMP '{time:%Y-%m-%d %H:%M:%S.%f}', {period_s}) AS bucket"
    (row,) = database.connection.sql(sql).to_arrow_table().to_pylist()
    seconds = int(time.timestamp())
    assert row["bucket"].replace(tzinfo=UTC).timestamp() == seconds - seconds % period_s
