"""Grants: no identity that parses hostile input may change the records of writes to brokers."""

import re

import pytest

from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.schemas import grants
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import (
    ANSWER_STATE,
    CONFIG_CHANGES,
    FEEDBACK_LOCKS,
    PIPELINE_PROGRESS,
    PLANS,
)

PLACE, LEDGER = grants.Place("main", "quotaflow"), grants.Place("main", "quotaflow_ledger")
CHANGES = re.compile(r"GRANT MODIFY ON TABLE `main`\.`quotaflow`\.`(\w+)` TO `(\w+)`")


def changed_by() -> dict[str, set[str]]:
    """The tables that each identity may change."""
    statements = "\n".join(grants.statements(PLACE, PLACE, "jobs", "operator"))
    by: dict[str, set[str]] = {"jobs": set(), "operator": set()}
    for table, principal in CHANGES.findall(statements):
        by[principal].add(table)
    return by


def test_every_job_may_change_what_it_fills_and_no_record_of_a_write() -> None:
    filled = {table.name for job in JOBS.values() for table in job.fills}
    assert filled <= changed_by()["jobs"]
    assert changed_by()["jobs"].isdisjoint({"plans", "config_changes", "feedback_locks"})
    assert changed_by()["jobs"] | changed_by()["operator"] == set(TABLES)


def test_the_operator_may_change_what_it_writes_and_no_fact() -> None:
    written = {CONFIG_CHANGES, PLANS, FEEDBACK_LOCKS, ANSWER_STATE, PIPELINE_PROGRESS}
    answers = {answer.table.name for answer in ANSWERS}
    assert changed_by()["operator"] == {table.name for table in written} | answers


def test_nothing_is_granted_on_the_schema_that_its_tables_would_inherit() -> None:
    statements = list(grants.statements(PLACE, PLACE, "jobs", "operator"))
    on_schema = [each for each in statements if " ON SCHEMA " in each]
    assert len(on_schema) == 2
    assert all(each.startswith("GRANT USE SCHEMA, SELECT ON") for each in on_schema)
    assert not any("ALL PRIVILEGES" in each or "MANAGE" in each for each in statements)


def test_in_a_schema_of_its_own_the_ledger_is_the_operator_s_alone() -> None:
    statements = list(grants.statements(PLACE, LEDGER, "jobs", "operator"))
    of_ledger = [each for each in statements if "`quotaflow_ledger`" in each]
    assert [each for each in of_ledger if each.endswith("TO `jobs`")] == [
        "GRANT USE SCHEMA, SELECT ON SCHEMA `main`.`quotaflow_ledger` TO `jobs`"
    ]
    changed = {table for each in of_ledger for table in re.findall(r"ON TABLE .*`(\w+)` TO", each)}
    assert changed == grants.OPERATOR_TABLES
    assert "GRANT CREATE TABLE ON SCHEMA `main`.`quotaflow_ledger` TO `operator`" in of_ledger
    assert not [s for s in statements if "MODIFY ON TABLE `main`.`quotaflow`.`plans`" in s]


def test_names_are_quoted() -> None:
    odd = grants.Place("a`b", "c")
    statements = list(grants.statements(odd, odd, "j", "o`; DROP"))
    assert statements[0] == "GRANT USE CATALOG ON CATALOG `a``b` TO `j`"
    assert any(each.endswith("TO `o``; DROP`") for each in statements)


def test_the_command_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["ddl", "--grants", "--operator", "ops", "--set"]
    assert execute([*words, "warehouse.catalog_schema=main.quotaflow"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert "GRANT MODIFY ON TABLE `main`.`quotaflow`.`plans` TO `ops`;" in printed
    assert execute(["ddl", "--grants"]) == 2
    assert "name a catalog with" in capsys.readouterr().err


def test_ddl_creates_the_ledger_in_its_schema_and_views_of_it_beside_the_other_tables(
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = ["warehouse.catalog_schema=main.quotaflow", "warehouse.ledger_schema=main.ledger"]
    assert execute(["ddl", "--set", places[0], "--set", places[1]]) == 0
    printed = capsys.readouterr().out
    assert "CREATE TABLE IF NOT EXISTS main.ledger.plans (" in printed
    assert "CREATE OR REPLACE VIEW plans AS SELECT * FROM main.ledger.plans;" in printed
    assert "CREATE TABLE IF NOT EXISTS requests (" in printed
