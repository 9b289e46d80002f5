"""Every table names the command that fills it, and the command exists."""

import pytest

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


@pytest.mark.parametrize("table", TABLES)
def test_a_table_names_what_fills_it(table: str) -> None:
    command, *arguments = fillers.filler(table).split()
    assert command in COMMANDS
    assert (command == "snapshot") == (table in BY_SNAPSHOT)
    if table in BY_JOBS:
        assert arguments == [BY_JOBS[table], "--once"]
    if table in BY_ANSWERS:
        assert (command, *arguments) == ("run", "--once")


def test_results_of_checks_come_from_check() -> None:
    assert fillers.hint("quality_results").startswith("`quotaflow check` fills it")
