"""Expectations of tables: the files of conf/expectations fit the declarations of tables."""

import re
from importlib import resources
from typing import Any

import pytest

from quotaflow.pipelines.quality import suites
from quotaflow.pipelines.quality.suites import CRITICAL, WARNING, Check
from quotaflow.pipelines.warehouse import views
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import PIPELINE_PROGRESS

VALUES = {"max_clock_skew_s": 60, "max_lateness_s": 3_600}
SUITES = suites.load(VALUES)
WRITTEN = [(name, check) for name in SUITES for check in suites.expected(name, VALUES)]
SQL = "unexpected_rows_query"


def named(table: str, check: str) -> Check:
    return next(check_ for check_ in SUITES[table] if check_.name == check)


def values_for(key: str) -> list[Any]:
    """The checks of conf/expectations with this argument, as cases."""
    checks = ((name, check) for name, check in WRITTEN if key in check.kwargs)
    return [pytest.param(name, check, id=f"{name} {check.name}") for name, check in checks]


def test_every_table_has_a_suite_and_every_file_a_table() -> None:
    folder = resources.files("quotaflow.conf") / "expectations"
    files = {file.name.removesuffix(".yaml") for file in folder.iterdir()}
    assert files <= SUITES.keys()
    assert SUITES.keys() == TABLES.keys() - {"quality_results"}
    assert all(SUITES.values())


@pytest.mark.parametrize("table", SUITES)
def test_names_are_unique_and_columns_are_the_table_s(table: str) -> None:
    checks = SUITES[table]
    assert len({check.name for check in checks}) == len(checks)
    columns = {
        column for check in checks if check.column_name for column in check.column_name.split(", ")
    }
    assert columns <= set(TABLES[table].column_names)
    assert {check.severity for check in checks} <= {CRITICAL, WARNING}


def test_every_outcome_that_is_counted_is_expected() -> None:
    comment = next(c.comment for c in PIPELINE_PROGRESS.columns if c.name == "outcome")
    (outcomes,) = (c for c in SUITES["pipeline_progress"] if c.name == "outcome_known")
    assert set(outcomes.kwargs["value_set"]) == set(re.findall(r"\w+", comment)) - {"or"}


@pytest.mark.parametrize(
    ("table", "check"),
    values_for("value_set"),
)
def test_a_set_of_values_is_the_one_the_declaration_tells_of(table: str, check: Check) -> None:
    # One column may speak of the words of another.
    comments = " ".join(column.comment for column in TABLES[table].columns)
    words = set(re.findall(r"[\w-]+", comments))
    assert set(check.kwargs["value_set"]) - words - TABLES.keys() == set()


@pytest.mark.parametrize(
    ("table", "check"),
    values_for(SQL),
)
def test_sql_looks_at_what_is_new_and_says_what_it_expects(table: str, check: Check) -> None:
    query = check.kwargs[SQL]
    assert "{batch}" in query
    assert "$" not in query
    # Only tables are there by their names.
    assert views.names_in(query, views.load()) == []
    assert check.description
    assert table in SUITES


def test_what_follows_from_a_declaration() -> None:
    assert named("requests", "source_offset_not_null").severity == CRITICAL
    key = named("requests", "key_unique")
    place = "source_topic, source_partition, source_offset, source_line"
    assert key.column_name == f"cluster_id, {place}"
    assert named("producer_id_rates", "rate_per_s_not_negative").severity == CRITICAL
    # A client's own number may stop nobody's plan.
    assert named("requests", "max_bytes_not_negative").severity == WARNING
    assert named("feedback_locks", "key_unique").column_name == "cluster_id"
    assert not [check for check in SUITES["client_metrics"] if check.name == "key_unique"]
    assert not [check for check in SUITES["requests"] if "client_id" in (check.column_name or "")]
    # -1 bytes are no limit there.
    advice = {check.column_name for check in SUITES["remote_read_advice"]}
    assert "extra_local_bytes" in advice
    assert "local_retention_bytes" not in advice
