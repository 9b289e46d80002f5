"""What commands that read tables import: nothing that reads Kafka, starts a JVM or is slow."""

import json
from pathlib import Path

from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...cases import cases
from ...own_process import printed_by, python
from ...rows import used
from ...schemas.views.view_tables import make_tables_and_answers

HEAVY = ("great_expectations", "kafka", "pandas", "pydantic_settings", "pyspark", "sqlglot")
SCRIPT = f"""
import json, sys
from quotaflow.pipelines.__main__ import execute
for words in json.loads(sys.argv[1]):
    execute(words)
    print(json.dumps([words[0], sorted(set({HEAVY!r}) & set(sys.modules))]), file=sys.stderr)
"""


NO_JVM = (
    *("feedback.runs.apply_run", "feedback.runs.frozen_plans", "feedback.runs.request_logger"),
    *("feedback.runs.restore_run", "monitoring.health", "monitoring.notifier", "doctor.doctor"),
    *("snapshots.take", "commands.snapshot"),
)
MODULES = ", ".join(f"quotaflow.pipelines.{module}" for module in NO_JVM)
OF_COMMANDS = {"pyarrow", "pydantic", "quotaflow.pipelines.commands.options", "yaml"}
EXECUTE = "from quotaflow.pipelines.__main__ import execute\nexecute"


@cases(
    ("code", "heavy"),
    ("help", f"{EXECUTE}(['--help'])", OF_COMMANDS),
    ("metrics", f"{EXECUTE}(['metrics', 'lag'])", {"pyarrow", "pyspark", "deltalake", "kafka"}),
    ("what needs no JVM", f"import {MODULES}", {"pyspark", "py4j"}),
)
def test_nothing_heavy_is_imported(code: str, heavy: set[str]) -> None:
    printed = printed_by(f"{code}\nimport sys\nprint(sorted({heavy!r} & set(sys.modules)))")
    assert printed.endswith("[]\n")


def test_why_imports_no_numpy_which_still_can_be_imported(warehouse: Warehouse) -> None:
    make_tables_and_answers(warehouse, {"quota_usage": [used(0, "producer_byte_rate", 9.0)]})
    words = ["why", "alice", "--set", f"warehouse.path={warehouse.conf.folder}"]
    code = f"{EXECUTE}({words})\nimport sys\nprint('numpy' in sys.modules)\nimport numpy"
    assert printed_by(code).endswith("False\n")


def test_a_short_command_seeks_no_cycles_in_what_stays(warehouse: Warehouse) -> None:
    make_tables_and_answers(warehouse, {"quota_usage": [used(0, "producer_byte_rate", 9.0)]})
    words = ["quotaflow", "why", "alice", "--set", f"warehouse.path={warehouse.conf.folder}"]
    code = f"""
import gc, sys
from quotaflow.pipelines import __main__
sys.argv, seen = {words}, []
gc.callbacks.append(lambda phase, info: seen.append(info["generation"]))
__main__.main()
print(max(seen, default=0) < 2)
"""
    assert printed_by(code).endswith("True\n")


def test_commands_that_read_import_nothing_heavy(warehouse: Warehouse, tmp_path: Path) -> None:
    """One process: what one command imports, those after it have too."""
    make_tables_and_answers(warehouse, {"quota_usage": [used(0, "producer_byte_rate", 9.0)]})
    lines = [["status"], ["show", "quota_usage"], ["why", "alice"], ["plan"]]
    lines += [["report", "--out", str(tmp_path / "report.html")]]
    place = ["--set", f"warehouse.path={warehouse.conf.folder}"]
    process = python(SCRIPT, json.dumps([[*words, *place] for words in lines]))
    assert process.returncode == 0, process.stderr
    imported = [json.loads(line) for line in process.stderr.splitlines() if line.startswith("[")]
    assert imported == [[words[0], []] for words in lines]
    assert (tmp_path / "report.html").is_file()
