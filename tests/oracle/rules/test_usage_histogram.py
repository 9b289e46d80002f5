"""Histogram buckets of usage: every value is near that of its histogram bucket, also in SQL."""

import math

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.warehouse import views
from quotaflow.udfs.rules.usage_histogram import PER_LN

from .usage_histogram import MAX_ERROR, MIDDLE, bucket_of, value_of

VALUES = st.floats(1e-6, 1e15)


@pytest.mark.parametrize(
    ("value", "bucket"),
    [(0.0, None), (1.0, -1), (1.05, 0), (2.0, 7), (2.01, 8), (4.0, 15), (0.5, -9)],
)
def test_bounds_are_those_of_opentelemetry(value: float, bucket: int | None) -> None:
    assert bucket_of(value) == bucket


@given(VALUES)
def test_every_value_is_within_five_per_cent_of_its_bucket(value: float) -> None:
    assert MAX_ERROR < 0.05
    assert math.isclose(value_of(bucket_of(value)), value, rel_tol=MAX_ERROR + 1e-9)


@given(st.integers(-100, 500))
def test_the_value_of_a_bucket_is_in_it(bucket: int) -> None:
    assert bucket_of(value_of(bucket)) == bucket


@given(st.lists(VALUES, min_size=1, max_size=50))
def test_duckdb_computes_the_same_buckets(values: list[float]) -> None:
    sql = f"SELECT [CAST(ceil(ln(x) * {PER_LN!r}) AS INT) - 1 FOR x IN $values]"
    (actual,) = duckdb.execute(sql, {"values": values}).fetchall()[0]
    assert actual == [bucket_of(value) for value in values]


@pytest.mark.parametrize("name", ["client_usage_windows", "user_usage_windows"])
def test_views_have_the_formula_of_the_rule(name: str) -> None:
    sql = views.load()[name].sql
    assert f"exp((counted.bucket + 1) * {1 / PER_LN!r}e0) * {MIDDLE!r}e0" in " ".join(sql.split())
