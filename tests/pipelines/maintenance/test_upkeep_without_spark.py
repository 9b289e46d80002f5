"""`quotaflow upkeep` in a folder: no JVM, and tables that are whole however it ends."""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.config import UpkeepSection
from quotaflow.pipelines.maintenance import upkeep
from quotaflow.pipelines.maintenance.stored_tables import ByDeltaRs
from quotaflow.pipelines.maintenance.upkeep import UpkeepOutcome
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...cases import cases
from ...delta_tables import Fill

NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) + timedelta(days=1)
OLD, YOUNG = NOON - timedelta(100), NOON - timedelta(2)
FILES = 3
NAMES = ("requests", "traffic", "configs", "pipeline_progress")
KEPT_DAYS = {"requests": 30, "traffic": 90, "configs": 30, "pipeline_progress": 95}
LEFT = {"requests": FILES, "traffic": FILES, "configs": 3 * FILES, "pipeline_progress": FILES + 1}
"""Young rows of each table; of a snapshot also those true then, and of a query the newest batch."""


class EndedError(BaseException):
    """The process ends here."""


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "get", refuse_session)


def refuse_session(*_: object) -> Any:
    raise AssertionError("a folder needs no session")


@pytest.fixture
def filled(warehouse: Warehouse, fill: Fill) -> Warehouse:
    """Facts, a result, a snapshot and progress: old and young rows, in small files."""
    warehouse.ensure(refuse_session, [TABLES[name] for name in NAMES])
    for number in range(FILES):
        for at in (OLD, YOUNG):
            row = {"cluster_id": "c", "event_time": at + timedelta(seconds=number)}
            fill("requests", [row | {"record_time": row["event_time"], "correlation_id": number}])
            fill("traffic", [row | {"event_date": at.date(), "topic": f"t{number}"}])
            fill("pipeline_progress", [row | {"query_id": "q", "batch_id": number}])
            topic = {"entity_type": "topic", "entity_name": f"t{number}", "config_key": "k"}
            topic |= {"is_removed": False, "config_value": str(at)}
            fill("configs", [row | topic | {"event_time": at - timedelta(days=1)}, row | topic])
    return warehouse


def tend(warehouse: Warehouse, vacuum_after_h: int = 0) -> dict[str, UpkeepOutcome]:
    section = UpkeepSection().model_copy(
        update={"vacuum_after_h": vacuum_after_h, "retention_days": KEPT_DAYS}
    )
    conf = config.Conf(warehouse=warehouse.conf, upkeep=section)
    done = upkeep.run_upkeep(conf, NAMES, NOON, lambda _: None)
    return {outcome.name: outcome for outcome in done}


def rows(warehouse: Warehouse, name: str) -> list[str]:
    """The rows of a table, but those that upkeep adds."""
    of_upkeep = " WHERE job IS NULL" if name == "pipeline_progress" else ""
    return sorted(map(str, FolderReader(warehouse).rows(f"SELECT * FROM {name}{of_upkeep}")))


def versions(warehouse: Warehouse) -> dict[str, int]:
    return {name: warehouse.place.open(name).version() for name in NAMES}


def test_young_rows_stay_as_they_are_and_old_ones_go(filled: Warehouse) -> None:
    before = {name: rows(filled, name) for name in NAMES}
    done = tend(filled)
    after = {name: rows(filled, name) for name in NAMES}
    for name in NAMES:
        assert set(after[name]) < set(before[name])
        assert len(before[name]) - len(after[name]) == done[name].rows_removed
    assert {name: len(each) for name, each in after.items()} == LEFT
    assert {done[name].files_after for name in ("requests", "traffic", "configs")} == {1}
    counted = "SELECT target, row_count FROM pipeline_progress WHERE outcome = 'removed'"
    removed = {row["target"]: row["row_count"] for row in FolderReader(filled).rows(counted)}
    assert removed == {name: done[name].rows_removed for name in NAMES}
    assert all(done[name].disk_bytes_after == done[name].bytes_after for name in NAMES[:3])


def test_what_a_run_by_itself_counted_goes_with_its_time(filled: Warehouse, fill: Fill) -> None:
    counted = {"cluster_id": "c", "event_time": OLD, "batch_id": 1}
    for job in ("roll_up", "rebuild", "backfill"):
        fill("pipeline_progress", [counted | {"query_id": f"{job} {uuid.uuid4()}"}])
    tend(filled)
    assert len(rows(filled, "pipeline_progress")) == LEFT["pipeline_progress"]


def test_old_rows_go_after_a_clock_went_back(
    filled: Warehouse, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 2_000_000_000 * 10**9)
    tend(filled)
    fill("requests", [{"cluster_id": "c", "event_time": OLD}])
    monkeypatch.setattr("time.time_ns", lambda: 1_900_000_000 * 10**9)
    tend(filled)
    assert len(rows(filled, "requests")) == LEFT["requests"]


def test_a_second_run_changes_nothing(filled: Warehouse) -> None:
    tend(filled)
    before = versions(filled)
    assert {outcome.rows_removed for outcome in tend(filled).values()} == {0}
    assert versions(filled) == before


def test_files_without_a_commit_go_after_their_time(filled: Warehouse) -> None:
    left = filled.folder("requests") / "part-left.snappy.parquet"
    left.write_bytes(b"a task ended here")
    for hours, is_there in ((24, True), (0, False)):
        tend(filled, hours)
        assert left.exists() is is_there


def ends_after(step: Callable[..., Any]) -> Callable[..., Any]:
    def ends(*arguments: Any, **named: Any) -> Any:
        step(*arguments, **named)
        raise EndedError

    return ends


@cases(
    "step",
    ("rows are removed", "remove"),
    ("files are joined", "compact"),
    ("files are deleted", "vacuum"),
)
def test_a_run_that_ends_in_between_leaves_tables_whole_and_the_next_one_does_the_rest(
    filled: Warehouse, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    before = {name: set(rows(filled, name)) for name in NAMES}
    with monkeypatch.context() as patched:
        patched.setattr(ByDeltaRs, step, ends_after(getattr(ByDeltaRs, step)))
        with pytest.raises(EndedError):
            tend(filled)
    assert all(set(rows(filled, name)) <= before[name] for name in NAMES)
    tend(filled)
    assert {name: len(rows(filled, name)) for name in NAMES} == LEFT
