"""The driver killed at each named point of a batch: the tables are as if nothing had been.

tests/live/test_exactly_once.py kills at random; here each point is met, one after the other in the
same warehouse, and most of them within one batch.
"""

import json
import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

import pytest

from ...own_process import quotaflow
from . import recorded
from .command import conf_file
from .driver import contents, outcome

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.timeout(3_600)]

BATCHES = 2
INGEST = "ingest_request_log"
OF_INGEST = [
    f"{INGEST} 1 {where}"
    for where in (
        *("begin", "files:requests", "requests", "telemetry_pushes"),
        *("files:quarantine", "pipeline_progress", "end"),
    )
]
OF_READERS = [
    "client_metrics 1 files:client_metrics",
    "client_metrics 1 client_metrics",
    "fetches 1 files:fetches",
    "fetches 1 fetches",
    "fetches 1 pipeline_progress",
    "fetches 1 fetch_sessions",
]
# The results of a batch are written in this order.
OF_RESULTS = [
    f"request_results 1 {where}"
    for where in (
        "files:traffic",
        "traffic",
        "quota_usage",
        "files:pipeline_progress",
        "pipeline_progress",
        "end",
    )
]
JOINING = ("ingest_request_log", "fetches", "client_metrics", "request_results")
OF_JOINS = [
    f"{where} {name}"
    for name in ("requests", "telemetry_pushes", "fetches", "client_metrics")
    for where in ("written", "joined")
]
# More than runs that are killed take: each sees a join after few batches.
JOINED_BATCHES = 60
# Older than what VACUUM keeps in any case.
MONTH_S = 30 * 86_400


@pytest.fixture(scope="module")
def topic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A topic of recorded lines."""
    folder = tmp_path_factory.mktemp("topic")
    recorded.write(folder, recorded.dealt(recorded.golden_lines(), BATCHES))
    return folder


def ingested(folder: Path, topic: Path) -> Path:
    """The conf of a new warehouse beside that topic."""
    conf = conf_file(folder)
    shutil.copytree(topic, folder / "topic")
    return conf


def dies_at(conf: Path, points: list[str], *jobs: str) -> None:
    """Die at each of these points, and then come through."""
    for point in points:
        code, output = outcome("killed", conf, point, *jobs)
        assert code == -signal.SIGKILL, (point, output)
    code, output = outcome("killed", conf, "", *jobs)
    assert code == 0, output


@pytest.fixture(scope="module")
def calm(topic: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse in which nothing went wrong."""
    folder = tmp_path_factory.mktemp("calm")
    dies_at(ingested(folder, topic), [], INGEST)
    return folder


def test_a_kill_at_any_point_of_a_batch_of_lines_changes_no_table(
    calm: Path, topic: Path, tmp_path: Path
) -> None:
    dies_at(ingested(tmp_path, topic), OF_INGEST, INGEST)
    expected, killed = (contents(folder / "warehouse", [INGEST]) for folder in (calm, tmp_path))
    assert min(rows.total() for rows in expected.values()) > 5
    for name, rows in expected.items():
        assert killed[name] == rows, name


def _is_reported_after(row: str) -> bool:
    """Pushes in and left out are counted when their batch is over, and not if killed by then."""
    return "'job': 'client_metrics'" in row and "'outcome': 'out'" not in row


def test_a_kill_at_any_point_of_what_reads_tables_changes_no_table(
    calm: Path, tmp_path: Path
) -> None:
    jobs = ("client_metrics", "fetches")
    of_calm, of_killed = calm_and_killed(calm, tmp_path, jobs, OF_READERS)
    for where in (of_calm, of_killed):
        where["pipeline_progress"] = Counter(
            {row: n for row, n in where["pipeline_progress"].items() if not _is_reported_after(row)}
        )
    assert of_killed == of_calm
    assert {name for name, rows in of_calm.items() if rows} >= {"client_metrics", "fetches"}


def test_a_kill_at_any_point_of_results_changes_no_table_and_upkeep_deletes_what_it_left(
    calm: Path, tmp_path: Path
) -> None:
    jobs = ("request_results",)
    of_calm, of_killed = calm_and_killed(calm, tmp_path, jobs, OF_RESULTS)
    assert of_killed == of_calm
    assert {name for name, rows in of_calm.items() if rows} >= {"traffic", "pipeline_progress"}
    warehouse = tmp_path / "killed" / "warehouse"
    left = {name: left_files(warehouse / name) for name in ("traffic", "pipeline_progress")}
    assert all(left.values()), left
    for file in left["traffic"] + left["pipeline_progress"]:
        time_s = file.stat().st_mtime - MONTH_S
        os.utime(file, (time_s, time_s))
    program = quotaflow("upkeep", *left)
    kept = [f"--set=upkeep.retention_days.{name}=null" for name in left]
    conf = warehouse.parent / "conf.yaml"
    subprocess.run([*program, *kept, "--conf", conf], check=True, timeout=600)
    assert not any(left_files(warehouse / name) for name in left)
    assert contents(warehouse, jobs) == of_calm


def test_kills_while_small_files_are_joined_beside_jobs_change_no_table(tmp_path: Path) -> None:
    batches = recorded.dealt(recorded.golden_lines(), JOINED_BATCHES)
    confs = []
    for name in ("expected", "killed"):
        confs.append(conf_file(tmp_path / name))
        recorded.write(tmp_path / name / "topic", batches)
    _, of_killed = confs
    for point in OF_JOINS:
        code, output = outcome("joining", of_killed, point, *JOINING)
        assert code == -signal.SIGKILL, (point, output)
    for conf in confs:
        dies_at(conf, [], *JOINING)
    expected, killed = (contents(conf.parent / "warehouse", JOINING) for conf in confs)
    for where in (expected, killed):
        # Jobs that read tables count by batch, and other files are other batches.
        where["pipeline_progress"] = Counter(
            {row: n for row, n in where["pipeline_progress"].items() if f"'job': '{INGEST}'" in row}
        )
    for name, rows in expected.items():
        assert killed[name] == rows, name
    assert left_files(of_killed.parent / "warehouse" / "requests")


def calm_and_killed(
    calm: Path, folder: Path, jobs: Sequence[str], points: list[str]
) -> tuple[dict[str, Counter[str]], dict[str, Counter[str]]]:
    """What the tables have after a run, and after one that was killed at these points."""
    for name, met in (("expected", []), ("killed", points)):
        conf = conf_file(folder / name)
        shutil.copytree(calm / "warehouse", folder / name / "warehouse")
        dies_at(conf, met, *jobs)
    expected, killed = (
        contents(folder / name / "warehouse", jobs) for name in ("expected", "killed")
    )
    return expected, killed


def left_files(folder: Path) -> list[Path]:
    """The data files that no version of a table names."""
    named = {unquote(path) for path in versions_files(folder)}
    files = [file for file in folder.rglob("*.parquet") if file.parent.name != "_delta_log"]
    return [file for file in files if str(file.relative_to(folder)) not in named]


def versions_files(folder: Path) -> Iterator[str]:
    """The paths of all files that the log of a table adds."""
    for log in (folder / "_delta_log").glob("*.json"):
        for line in log.read_text(encoding="utf-8").splitlines():
            if "add" in (action := json.loads(line)):
                yield action["add"]["path"]
