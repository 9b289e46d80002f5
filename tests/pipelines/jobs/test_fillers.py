"""Every table names the command that fills it, and the command exists."""

from quotaflow.pipelines.commands.index import COMMANDS
from quotaflow.pipelines.jobs import fillers
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.snapshots.sections import SNAPSHOT_TABLES
from quotaflow.schemas.tables.catalog import TABLES

BY_SNAPSHOT = {table.name for table in SNAPSHOT_TABLES}
# The first job of the registry that fills a table.
BY_JOBS = {table.name: job.name for job in reversed(JOBS.values()) for table in job.fills}
BY_ANSWERS = {answer.name for answer in ANSWERS}


def test_a_table_names_what_fills_it() -> None:
    named = {table: fillers.filler(table) for table in TABLES}
    assert {text.split()[0] for text in named.values()} <= COMMANDS.keys()
    assert {table for table, text in named.items() if text.startswith("snapshot")} == BY_SNAPSHOT
    expected = {table: f"run {job} --once" for table, job in BY_JOBS.items()}
    expected |= dict.fromkeys(BY_ANSWERS, "run --once")
    assert {table: named[table] for table in expected} == expected


def test_results_of_checks_come_from_check() -> None:
    assert fillers.hint("quality_results").startswith("`quotaflow check` fills it")
