"""README and docs: commands that only read tables run as they stand, over the demo's traffic."""

import shlex
from pathlib import Path

import pytest

from quotaflow.pipelines.__main__ import execute

from ..told_commands import PAGES, in_blocks, words

READ_TABLES = {"tables", "show", "sql", "ddl", "metrics", "jobs", "why", "what-if"}
TOLD = sorted({told for page in PAGES for told in in_blocks(page)})


@pytest.mark.parametrize("told", [t for t in TOLD if words(t)[0] in READ_TABLES and "..." not in t])
def test_a_command_that_reads_tables_runs(
    told: str, filled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = [] if words(told)[0] in {"metrics", "jobs"} else ["--set", f"warehouse.path={filled}"]
    code = execute([*words(told), *place])
    said = capsys.readouterr()
    assert code == 0, shlex.join(["quotaflow", *words(told)]) + ": " + said.err
    assert said.out
