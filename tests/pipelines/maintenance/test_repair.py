"""`quotaflow upkeep --repair`: what is lost is left out and named, and filled from where it is."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import JobError, KafkaError
from quotaflow.pipelines.maintenance import repair
from quotaflow.pipelines.maintenance.rebuild import RebuildRequest
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...cases import first_of
from ...command_line import Command
from ...delta_tables import NOON, Fill
from ...rows import at, request, row
from ...schemas.views.view_tables import make_tables, no_session
from ..commands.test_damage import KINDS, WAYS, emptied, first

_USED = {"usage": 1.0, "broker_id": 2, "quota_type": "producer_byte_rate", "enforcement": "stock"}
HOUR = timedelta(hours=1)


class Filled:
    """In place of the topic and of rules: the calls of a repair."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any, Any]] = []
        self.fails = False

    def backfill(self, _: Conf, job: str, times: TimeRange, *__: object, **___: bool) -> object:
        if self.fails:
            raise KafkaError("no broker")
        self.calls.append((job, times.start, times.end))
        return {"requests": 1}

    def rebuild(self, _: Conf, request: RebuildRequest, __: object) -> int:
        self.calls.append((request.table, request.since, request.until))
        return 1


@pytest.fixture
def filled(monkeypatch: pytest.MonkeyPatch) -> Filled:
    """In place of Spark."""
    filled = Filled()
    monkeypatch.setattr(repair, "backfill", filled.backfill)
    monkeypatch.setattr(repair, "rebuild", filled.rebuild)
    return filled


@pytest.fixture
def root(warehouse: Warehouse, fill: Fill) -> Path:
    """Tables of two commits with a row each."""
    on_time = request(5, "PRODUCE", record_time=at(5))
    make_tables(warehouse, {"requests": [on_time], "quota_usage": [row("quota_usage", 0, _USED)]})
    fill("requests", [request(90, "PRODUCE")])
    fill("quota_usage", [row("quota_usage", 60, _USED)])
    return warehouse.conf.folder


def times(warehouse: Warehouse, table: str) -> list[float]:
    """The seconds after noon of a table's rows."""
    rows = FolderReader(warehouse).rows(f"SELECT event_time FROM {table} ORDER BY 1")
    return [
        (each["event_time"] - NOON.replace(tzinfo=each["event_time"].tzinfo)).total_seconds()
        for each in rows
    ]


def newest_file(table: Path) -> Path:
    """The file that the newest version added."""
    (path,) = set(DeltaTable(table).file_uris()) - set(
        DeltaTable(table, version=DeltaTable(table).version() - 1).file_uris()
    )
    return Path(path)


@pytest.mark.parametrize("way", first_of([*WAYS[-1:], *WAYS[:-1]], 2))
def test_a_lost_file_is_left_out_and_its_time_is_read_again(
    way: Callable[[Path], None],
    root: Path,
    warehouse: Warehouse,
    filled: Filled,
    table_command: Command,
) -> None:
    way(newest_file(root / "requests"))
    err = table_command("upkeep", "--repair").err
    assert "requests: 1 file left out, with 1 row from 2026-11-21 12:01:30 to 12:01:30 UTC" in err
    assert times(warehouse, "requests") == [5]
    ((job, start, end),) = filled.calls
    assert (job, start) == ("ingest_request_log", at(90) - HOUR)
    assert at(90) + HOUR <= end <= at(91) + HOUR
    assert "no file is lost or broken" in table_command("upkeep", "--repair").err


# Without the newest commit the log is that of the version before.
@pytest.mark.parametrize("way", first_of(WAYS[:-1]))
def test_a_broken_commit_is_replaced_by_one_without_rows(
    way: Callable[[Path], None],
    root: Path,
    warehouse: Warehouse,
    filled: Filled,
    table_command: Command,
) -> None:
    version = DeltaTable(root / "quota_usage").version()
    commit = root / f"quota_usage/_delta_log/{version:020d}.json"
    way(commit)
    err = table_command("upkeep", "--repair").err
    assert "quota_usage: 1 file left out, with 1 row from 2026-11-21 12:01:00" in err
    assert times(warehouse, "quota_usage") == [0]
    assert DeltaTable(root / "quota_usage").version() == version
    ((table, start, _),) = filled.calls
    assert (table, start) == ("quota_usage", at(60))


def test_the_first_commit_is_declared_again(
    warehouse: Warehouse, fill: Fill, filled: Filled, table_command: Command
) -> None:
    warehouse.ensure(no_session, [TABLES["requests"]])
    fill("requests", [request(5, "PRODUCE")])
    table_id = DeltaTable(warehouse.folder("requests")).metadata().id
    emptied(first(warehouse.conf.folder, "requests/_delta_log/*.json"))
    table_command("upkeep", "--repair", "requests")
    assert times(warehouse, "requests") == [5]
    assert DeltaTable(warehouse.folder("requests")).metadata().id == table_id
    assert not filled.calls


def test_a_broken_checkpoint_of_the_log_costs_nothing(
    root: Path, warehouse: Warehouse, filled: Filled, table_command: Command
) -> None:
    DeltaTable(root / "requests").create_checkpoint()
    emptied(first(root, "requests/_delta_log/*.checkpoint.parquet"))
    table_command.error("show", "requests", code=1)
    table_command("upkeep", "--repair")
    assert times(warehouse, "requests") == [5, 90]
    assert not filled.calls


@pytest.mark.parametrize(
    "kind", first_of(["answers' state", "commit of answers' state", "commit of an answer"])
)
def test_answers_are_computed_again(kind: str, root: Path, table_command: Command) -> None:
    emptied(KINDS[kind](root))
    table_command("upkeep", "--repair")
    assert table_command("show", "quota_advice", "--json").rows is not None
    assert table_command("show", "answer_state", "--json").rows


def test_what_cannot_be_filled_is_an_error_and_a_try_changes_nothing(
    root: Path, warehouse: Warehouse, filled: Filled, table_command: Command
) -> None:
    newest_file(root / "requests").unlink()
    before = sorted(root.glob("*/**/*"))
    assert "1 file would be left out" in table_command("upkeep", "--repair", "--dry-run").err
    assert sorted(root.glob("*/**/*")) == before
    filled.fails = True
    line = table_command("upkeep", "--repair", code=JobError.exit_code).err
    assert "requests: no broker" in line
    assert re.search(
        "error: requests is not filled again: quotaflow backfill ingest_request_log "
        r"--from 2026-11-21T11:01:30Z --until 2026-11-\d\dT[\d:]+Z$",
        line.strip(),
    )
    assert times(warehouse, "requests") == [5]


def test_a_table_that_cannot_be_repaired_costs_no_other_its_fill(
    root: Path,
    warehouse: Warehouse,
    filled: Filled,
    table_command: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repair, "refresh", lambda *_: filled.calls.append(("answers", None, None)))
    newest_file(root / "requests").unlink()
    DeltaTable(root / "quota_usage").create_checkpoint()
    emptied(first(root, "quota_usage/_delta_log/*.checkpoint.parquet"))
    first(root, "quota_usage/_delta_log/*0.json").unlink()
    err = table_command("upkeep", "--repair", code=JobError.exit_code).err
    assert "the commits before it were cleaned" in err
    assert "error: quota_usage is not repaired: see above" in err
    assert [name for name, *_ in filled.calls] == ["ingest_request_log", "answers"]
    assert times(warehouse, "requests") == [5]


def test_times_are_those_of_all_or_none() -> None:
    early, late = (at(0), at(5)), (at(3), at(9))
    assert repair._around([late, early]) == (at(0), at(9))
    assert repair._around([late, None]) is None
    assert repair._around([]) is None
