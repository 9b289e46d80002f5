"""The journal in a Delta table: complete after a crash, and nothing is written without it."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import JobError, LockedError
from quotaflow.pipelines.feedback.configs.change import Change
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.ledger.ledger import DONE, STARTED, Ledger, Record
from quotaflow.pipelines.feedback.runs import context, restore_run
from quotaflow.pipelines.feedback.writing import exclusive_section
from quotaflow.pipelines.feedback.writing.exclusive_section import DeltaJournal, RowAppender
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import CONFIG_CHANGES

from ....cases import cases
from ....crashes import CrashError, crash_at
from ....schemas.views.limit_rows import offending_now
from ....schemas.views.view_tables import make_tables_and_answers
from ..delta_scene import Folder, Opened, apply, changes, ledger
from ..fake_configs import DictConfigs, ListJournal, applying

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY = "producer_byte_rate"
CHILD = Path(__file__).parent / "killed_section.py"
ROOT = Path(__file__).parents[4]
STEPS = ("looked", "begun", "sent", "written", "recorded")


@pytest.fixture(autouse=True)
def no_session(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark may start in no test of a folder."""

    def get(*_: object) -> NoReturn:
        raise AssertionError("a Spark session was opened for tables in a folder")

    if not request.node.get_closest_marker("spark"):
        monkeypatch.setattr(session, "get", get)


@pytest.fixture
def folder(warehouse: Warehouse) -> Iterator[Folder]:
    made = Folder(warehouse)
    yield made
    made.free()


def test_records_come_back_as_they_were_stored(conf: Conf) -> None:
    made = ListJournal()
    applying(DictConfigs(), made, "r1").run("p1", changes("eve", "zoe"))
    odd = datetime(2026, 11, 21, 23, 59, 59, 999_999, tzinfo=UTC)
    made.add([replace(made.records[-1], event_time=odd, number=99, expires_at=None, detail="é\n'")])
    rows = RowAppender.from_conf(context.from_conf(conf).writes, print)
    rows.ensure([CONFIG_CHANGES])
    stored = DeltaJournal(rows, "me@host")
    for part in (made.records[:2], [], made.records[2:]):
        stored.add(part)

    read = open_reader(conf).rows("SELECT * FROM config_changes ORDER BY event_time, number")
    assert [journal.to_record(row) for row in read] == made.records
    assert {row["run_by"] for row in read} == {"me@host"}
    assert ledger(conf) == made.ledger


@pytest.mark.parametrize("at", STEPS)
def test_a_crash_between_any_two_steps_is_resolved(conf: Conf, opened: Opened, at: str) -> None:
    configs = DictConfigs()
    opened(configs)

    with pytest.raises(CrashError):
        apply(conf, "eve", "zoe", passed=crash_at(at))
    assert len(ledger(conf).open_records) == {"looked": 0, "recorded": 0}.get(at, 2)
    apply(conf, "eve", "zoe")
    assert [each[KEY] for each in configs.configs.values()] == ["1000", "1000"]
    assert (configs.writes, len(ledger(conf).owned)) == (2, 2)
    restore_run.restore_configs(context.from_conf(conf), print, everything=True)
    assert [*configs.configs.values()] == [{}, {}]
    assert ledger(conf).owned == {}


@pytest.mark.faults
@cases(
    ("at", "made", "steps"),
    ("recorded, not written", "begun", {}, [STARTED, STARTED, DONE]),
    ("written, not read back", "sent", {KEY: "1000"}, [STARTED, DONE]),
)
def test_after_kill_9_the_table_has_every_record(
    conf: Conf, opened: Opened, at: str, made: dict[str, str], steps: list[str]
) -> None:
    command = [sys.executable, str(CHILD), str(conf.warehouse.folder), at]
    code = "import runpy, sys; sys.modules['pyspark'] = None; sys.argv = sys.argv[1:]; "
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    command[1:1] = ["-c", code]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == -9, process.stderr
    (record,) = ledger(conf).open_records
    assert (record.step, record.config_key, record.config_value) == (STARTED, KEY, "1000")

    opened(DictConfigs({record.entity: made}))
    apply(conf, "mallory")
    rows = open_reader(conf).rows("SELECT step FROM config_changes ORDER BY event_time, number")
    assert [row["step"] for row in rows] == steps
    assert len(ledger(conf).owned) == 1


@dataclass
class Failing(DictConfigs):
    """Calls a function after a request of that kind."""

    after: str = ""
    then: Callable[[], None] = field(default=lambda: None)

    def refusal(self, changes: Sequence[Change]) -> str | None:
        answer = super().refusal(changes)
        if self.after == "refusal":
            self.then()
        return answer

    def write(self, changes: Sequence[Change]) -> str | None:
        answer = super().write(changes)
        if self.after == "write":
            self.then()
        return answer


@pytest.mark.parametrize("how", ["fill", "block"])
def test_nothing_is_written_to_the_cluster_that_cannot_be_recorded(
    conf: Conf, opened: Opened, folder: Folder, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    make_tables_and_answers(Warehouse(conf.warehouse), offending_now("mallory"))
    words = ["apply", "--yes", "--set", f"warehouse.path={conf.warehouse.folder}"]
    words += ["--set", "producer_ids.default_quota_per_s=1"]
    configs = Failing(after="refusal", then=getattr(folder, how))
    opened(configs)
    assert execute(words) == 1
    folder.free()
    errors = capsys.readouterr().err.splitlines()
    assert errors[-1].startswith("error: config_changes: cannot write: ")
    assert not any("Traceback" in line for line in errors)
    assert (configs.writes, configs.configs) == (0, {})
    assert ledger(conf) == Ledger()

    configs.after = ""
    assert execute(words) == 0
    assert (configs.writes, len(ledger(conf).owned)) == (1, 1)


def test_a_write_whose_end_cannot_be_recorded_is_found_by_the_next_run(
    conf: Conf, opened: Opened, folder: Folder
) -> None:
    configs = Failing(after="write", then=folder.fill)
    opened(configs)
    with pytest.raises(JobError, match=r"config_changes: cannot write: .*too large"):
        apply(conf, "mallory")
    folder.free()
    assert configs.writes == 1
    configs.after = ""
    apply(conf, "mallory")
    assert (configs.writes, len(ledger(conf).owned), ledger(conf).open_records) == (1, 1, ())


def test_a_table_that_cannot_be_made_is_one_error_and_is_made_by_the_next_run(
    conf: Conf, opened: Opened, folder: Folder
) -> None:
    opened(DictConfigs())
    conf.warehouse.folder.mkdir()
    folder.fill()
    with pytest.raises(JobError, match=r"config_changes: cannot write: .*too large"):
        RowAppender.from_conf(context.from_conf(conf).writes, print).ensure([CONFIG_CHANGES])
    folder.free()
    assert apply(conf, "mallory") == [DONE]


def test_while_another_process_writes_nothing_is_written(conf: Conf, opened: Opened) -> None:
    configs = DictConfigs()
    opened(configs)
    with Warehouse(conf.warehouse).lock(), pytest.raises(LockedError):
        apply(conf, "mallory")
    assert configs.writes == 0


@pytest.mark.spark
@pytest.mark.faults
def test_in_a_catalog_records_are_stored_by_spark(
    spark: "SparkSession", tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "get", lambda *_: spark)
    section = config.WarehouseSection(
        catalog_schema="spark_catalog.journal",
        ledger_schema="spark_catalog.ledger",
        checkpoints=str(tmp_path / "checkpoints"),
    )
    monkeypatch.setenv("SIGNING_KEY", "k" * 32)
    feedback = config.FeedbackSection(signing_keys=["env:SIGNING_KEY"])
    conf = config.Conf(warehouse=section, feedback=feedback)
    configs = DictConfigs()
    opened(configs)
    for name in ("journal", "ledger"):
        spark.sql(f"CREATE DATABASE {name} LOCATION '{tmp_path / name}'")
    try:
        assert apply(conf, "mallory") == [DONE]
        records: list[Record] = []
        with exclusive_section.acquired(context.from_conf(conf).writes, print) as again:
            records = [owned.record for owned in again.ledger.owned.values()]
        assert [(each.step, each.config_value) for each in records] == [(DONE, "1000")]
        assert spark.table("spark_catalog.ledger.feedback_locks").count() == 0
        assert not spark.catalog.tableExists("spark_catalog.journal.config_changes")
    finally:
        for name in ("journal", "ledger"):
            spark.sql(f"DROP DATABASE {name} CASCADE")
        spark.catalog.dropTempView("config_changes")
