"""The driver killed in the middle of a batch: after a restart the tables are as if nothing was."""

import os
import random
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from quotaflow.demo import story
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.spark import session
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import ANSWER_STATE

from ..own_process import quotaflow
from .tables_read import contents

TIMEOUT_S = 600
LINES_PER_BATCH = 8_000


class Driver:
    """`quotaflow run --once` as a process group of its own, so that its JVM dies with it."""

    def __init__(
        self, conf: Conf, folder: Path, spark: Mapping[str, str], jobs: Sequence[str]
    ) -> None:
        self.jobs = tuple(jobs)
        self.warehouse = folder / "warehouse"
        self.file = folder / "conf.yaml"
        sections = {
            "kafka": {"properties": dict(conf.kafka.properties)},
            "warehouse": {"path": str(self.warehouse)},
            "alerts": conf.alerts.model_dump(),
            "producer_ids": conf.producer_ids.model_dump(),
            "ingest": {"max_offsets_per_trigger": LINES_PER_BATCH},
            "spark": {"conf": dict(spark)},
        }
        self.file.write_text(yaml.safe_dump(sections))

    def start(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            quotaflow("run", *self.jobs, "--once", "--conf", str(self.file)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def finish(self) -> str:
        with self.start() as process:
            try:
                output, _ = process.communicate(timeout=TIMEOUT_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        assert process.returncode == 0, output
        return output

    def kill_after(self, batches: int, more_s: float) -> bool:
        """Kill -9 the driver a moment after so many batches; False if it was done before."""
        with self.start() as process:
            assert process.stdout is not None
            count = 0
            while count < batches and (line := process.stdout.readline()):
                count += ": batch " in line
            try:
                process.wait(more_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return True
        return False


@pytest.fixture(scope="module")
def moments() -> random.Random:
    """Where to kill: seeded, so that a failure can be seen again."""
    return random.Random(936)


def copy_snapshot(filled: Path, warehouse: Path) -> None:
    """Give a warehouse what a snapshot stored in another: results look up names and racks in it."""
    for name, table in TABLES.items():
        if "is_removed" in table.column_names and (filled / name).is_dir():
            shutil.copytree(filled / name, warehouse / name)


def killed_run_equals(filled: Path, killed: Driver, kills: int, moments: random.Random) -> None:
    copy_snapshot(filled, killed.warehouse)
    hits = sum(
        killed.kill_after(moments.randrange(1, 4), moments.random() * 4) for _ in range(kills)
    )
    assert hits > 0
    killed.finish()
    filled_by = {table.name for job in killed.jobs for table in JOBS[job].fills}
    expected, actual = contents(filled, filled_by), contents(killed.warehouse, filled_by)
    assert len(expected) > len(killed.jobs)
    for table, rows in expected.items():
        assert actual[table] == rows, table


@pytest.mark.faults
def test_a_kill_changes_no_fact_and_no_alert(
    filled: Path, conf: Conf, tmp_path: Path, moments: random.Random
) -> None:
    jobs = [*story.in_two(conf)[0], "metric_alerts"]
    killed_run_equals(filled, Driver(conf, tmp_path, session.SHORT_LIVED, jobs), 1, moments)


@pytest.mark.faults
@pytest.mark.timeout(3_600)
@pytest.mark.shows("has each record exactly once, after kills and replays")
def test_ten_kills_change_nothing(
    filled: Path, conf: Conf, tmp_path: Path, moments: random.Random
) -> None:
    # As jobs run: the result of generated code is compared with that of interpreted code.
    jobs = [job for group in story.in_two(conf) for job in group]
    killed = Driver(conf, tmp_path, session.ONE_COMPILER, jobs)
    killed_run_equals(filled, killed, 10, moments)
    # An answer may expire meanwhile: its rows stay, and their state has a newer time.
    made = {name for name in TABLES if (killed.warehouse / name).is_dir()} - {ANSWER_STATE.name}
    actual = contents(killed.warehouse, made)
    killed.finish()
    assert contents(killed.warehouse, made) == actual
