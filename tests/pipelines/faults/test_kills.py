"""Kill -9 after each write of a micro-batch, and lost commits: no row is lost, none comes twice."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from quotaflow.pipelines.checkpoints import newest_batch
from quotaflow.pipelines.jobs import JOBS

from ...live.tables_read import contents, query
from . import recorded
from .conftest import Made, Topic

pytestmark = [pytest.mark.spark, pytest.mark.faults]

KILLED = Path(__file__).with_name("killed_job.py")
TIMEOUT_S = 280
JOB = "ingest_request_log"
# requests, subscriptions, pushes, quarantine, progress: before them, after each, and so before
# Spark's own commit. One kill a micro-batch, so that each run replays one and goes on.
WRITES = 5


def killed(folder: Path, job: str, batch: int, writes: int, memory: str = "1g") -> int:
    """Run a job that dies there; returns its exit code."""
    command = [sys.executable, str(KILLED), str(folder), job, str(batch), str(writes), memory]
    with subprocess.Popen(command, start_new_session=True) as process:
        return process.wait(TIMEOUT_S)


def filled_by(job: str) -> set[str]:
    return {table.name for table in JOBS[job].fills}


@pytest.mark.timeout(1_800)
def test_a_kill_after_any_write_of_a_batch_changes_no_table(made: Made, topic: Topic) -> None:
    batches = recorded.dealt(recorded.golden_lines(), WRITES + 2)
    folder = topic(batches).parent
    calm = made("calm", JOB)
    recorded.run(calm, JOB)
    for batch in range(WRITES + 1):
        assert killed(folder, JOB, batch, writes=batch) == -signal.SIGKILL
        checkpoint = folder / "warehouse" / "_checkpoints" / JOB
        assert newest_batch(checkpoint) == batch
        assert not (checkpoint / "commits" / str(batch)).exists()
    assert killed(folder, JOB, batch=-1, writes=0) == 0
    expected = contents(calm.warehouse.conf.folder, filled_by(JOB))
    assert contents(folder / "warehouse", filled_by(JOB)) == expected
    twice = query(
        folder / "warehouse",
        "SELECT source_topic, source_partition, source_offset FROM requests "
        "GROUP BY source_topic, source_partition, source_offset HAVING count(*) > 1",
    )
    assert twice == []


@pytest.mark.timeout(900)
def test_commits_that_were_lost_are_made_good(made: Made, topic: Topic) -> None:
    jobs = (JOB, "client_metrics", "fetches")
    topic(recorded.dealt(recorded.golden_lines(), 3))
    setting = made("calm", *jobs)
    for job in jobs:
        recorded.run(setting, job)
    names = {name for job in jobs for name in filled_by(job)}
    expected = contents(setting.warehouse.conf.folder, names)
    for job in jobs:
        commits = setting.warehouse.checkpoint(job) / "commits"
        newest = newest_batch(setting.warehouse.checkpoint(job))
        (commits / str(newest)).unlink()
        (commits / f".{newest}.crc").unlink()
        recorded.run(setting, job)
    assert contents(setting.warehouse.conf.folder, names) == expected
