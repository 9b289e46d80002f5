"""What commands do while something is missing around them, as the table of docs/faults.md says."""

import shutil
from pathlib import Path

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...rows import request, row
from ...schemas.views.view_tables import make_tables
from .faults_of_commands import AS_EVER, COMMANDS, FAULTS, expected, outcome, table

_DAVE = {"principal": "User:dave", "client_id": "exports"}
_USED = {"usage": 1.0, "broker_id": 2, "quota_type": "producer_byte_rate", "enforcement": "stock"}
QUICK = [
    ("at most 24 open files", "sql"),
    ("no file can grow", "sql"),
    ("no file can grow", "upkeep"),
]
EVERY = [(fault, command) for fault in FAULTS for command in COMMANDS]
DOCS = Path(__file__).parents[3] / "docs" / "faults.md"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of tables."""
    folder = tmp_path_factory.mktemp("filled") / "warehouse"
    content = {
        "requests": [request(5, "PRODUCE", **_DAVE)],
        "quota_usage": [row("quota_usage", 0, _USED | _DAVE)],
    }
    make_tables(Warehouse(config.WarehouseSection(path=str(folder))), content)
    return folder


def check(fault: str, command: str, filled: Path, tmp_path: Path) -> None:
    tables = shutil.copytree(filled, tmp_path / "warehouse")
    actual = outcome(fault, command, tables)
    # A command may be quicker than Ctrl-C, or than the same beside it.
    is_quick = fault == "two runs of the command at once" or fault.startswith("Ctrl-C")
    assert actual in {expected(fault, command), AS_EVER if is_quick else None}


@pytest.mark.parametrize(("fault", "command"), QUICK)
def test_what_is_missing_is_no_traceback(
    fault: str, command: str, filled: Path, tmp_path: Path
) -> None:
    check(fault, command, filled, tmp_path)


@pytest.mark.faults
@pytest.mark.parametrize(("fault", "command"), EVERY)
def test_each_command_under_each_fault(
    fault: str, command: str, filled: Path, tmp_path: Path
) -> None:
    check(fault, command, filled, tmp_path)


def test_the_page_has_the_table() -> None:
    assert table() in DOCS.read_text(encoding="utf-8")
