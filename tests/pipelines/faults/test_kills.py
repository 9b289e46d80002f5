"""The driver killed at each named point of a batch: the tables are as if nothing had been.

tests/live/test_exactly_once.py kills at random; here each point is met, one after the other in the
same warehouse, and most of them within one batch.
"""

import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest

from . import recorded
from .command import conf_file
from .driver import contents, outcome

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.timeout(3_600)]

BATCHES = 2
INGEST = "ingest_request_log"
OF_INGEST = [f"{INGEST} 1 {where}" for where in ("begin", "requests", "telemetry_pushes", "end")]
OF_READERS = [
    "client_metrics 1 client_metrics",
    "fetches 1 fetches",
    "request_results 1 traffic",
    "request_results 1 end",
]


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
    jobs = ("client_metrics", "fetches", "request_results")
    expected, killed = tmp_path / "expected", tmp_path / "found"
    for folder, points in ((expected, []), (killed, OF_READERS)):
        conf = conf_file(folder)
        shutil.copytree(calm / "warehouse", folder / "warehouse")
        dies_at(conf, points, *jobs)
    of_calm, of_killed = (contents(where / "warehouse", jobs) for where in (expected, killed))
    for where in (of_calm, of_killed):
        where["pipeline_progress"] = Counter(
            {row: n for row, n in where["pipeline_progress"].items() if not _is_reported_after(row)}
        )
    for name, rows in of_calm.items():
        assert of_killed[name] == rows, name
    assert {name for name, rows in of_calm.items() if rows} >= {"client_metrics", "fetches"}
