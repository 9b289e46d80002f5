"""Checkpoints whose files cannot be written, by Spark's own means of testing that.

Spark's tests have a CheckpointFileManager that fails where the test says. The query dies at that
file; the next run goes on, and no row is lost or there twice.
"""

import json
import zipfile
from pathlib import Path

import pytest

from quotaflow.pipelines.spark import jars, session

from . import recorded
from .command import conf_file
from .driver import contents, outcome

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.timeout(3_600)]

_PACKAGE = "org/apache/spark/sql/execution/streaming/state/"
_MANAGER = f"{_PACKAGE.replace('/', '.')}FailureInjectionCheckpointFileManager"
_CLASSES = (f"{_PACKAGE}FailureInjection", f"{_PACKAGE}DelayClose")
FACTS = ("ingest_request_log", "client_metrics")
# Apart: while one of them fails, the other goes on, and has no batch left to fail.
FETCHES = ("ingest_request_log", "fetches")
RESULTS = ("ingest_request_log", "request_results")
# A file that was listed when its batch failed comes together with the next one.
BATCHES: dict[tuple[str, ...], int] = {FACTS: 3, FETCHES: 1, RESULTS: 1}
OF_FACTS = [
    ("write", "ingest_request_log/metadata"),
    ("write", "ingest_request_log/offsets/0"),
    ("rename", "ingest_request_log/commits/0"),
    ("rename", "ingest_request_log/offsets/1"),
    ("write", "client_metrics/state/0/0/1[.]delta"),
    ("write", "client_metrics/commits/0"),
    ("rename", "client_metrics/state/0/1/2[.]delta"),
    ("rename", "client_metrics/commits/1"),
]
OF_FETCHES = [("rename", "fetches/offsets/0"), ("write", "fetches/commits/0")]
OF_RESULTS = [("rename", "request_results/commits/0")]


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The few classes out of the jar of Spark's tests; its data sources are not for our session."""
    folder = tmp_path_factory.mktemp("classes")
    (jar,) = jars.jar_set("spark-test-jars", Path(__file__).parent)
    with zipfile.ZipFile(jar) as packed:
        packed.extractall(folder, [n for n in packed.namelist() if n.startswith(_CLASSES)])
    return folder


@pytest.mark.parametrize(
    ("jobs", "faults"),
    [(FACTS, OF_FACTS), (FETCHES, OF_FETCHES), (RESULTS, OF_RESULTS)],
    ids=["facts", "fetches", "results"],
)
def test_a_checkpoint_that_cannot_be_written_costs_a_run_and_no_row(
    jobs: tuple[str, ...], faults: list[tuple[str, str]], classes: Path, tmp_path: Path
) -> None:
    of_spark = session.SHORT_LIVED | {
        "spark.driver.extraClassPath": str(classes),
        "spark.sql.streaming.checkpointFileManagerClass": _MANAGER,
    }
    folders = [tmp_path / "calm", tmp_path / "troubled"]
    confs = [conf_file(folder, spark={"conf": of_spark}) for folder in folders]
    for folder in folders:
        recorded.write(folder / "topic", recorded.dealt(recorded.golden_lines(), BATCHES[jobs]))
    code, output = outcome("failing_checkpoint", *confs, json.dumps(faults), *jobs)
    assert code == 0, output
    calm, troubled = (contents(folder / "warehouse", jobs) for folder in folders)
    for name, rows in calm.items():
        assert troubled[name] == rows, name
    assert {name for name, rows in calm.items() if rows.total() > 9} >= {"requests"}
