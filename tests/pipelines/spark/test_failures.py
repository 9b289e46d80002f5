"""The line for a query that failed, and whether it starts again."""

import pytest
from pyspark.errors import PySparkException

from quotaflow.pipelines.errors import JobError
from quotaflow.pipelines.spark import failures

CALL = "An error occurred while calling o119.start.\n"


@pytest.mark.parametrize(
    ("message", "line"),
    [
        pytest.param("one\ntwo", "one", id="the first line"),
        pytest.param("", "no message", id="nothing"),
        pytest.param(
            f"{CALL}: java.io.IOException: bad\n\tat a.b.C",
            "java.io.IOException: bad",
            id="not which call of ours it was",
        ),
        pytest.param(
            "aborted\n\tat a\nCaused by: x.Y: job\n\tat b\nCaused by: z: the disk",
            "aborted: z: the disk",
            id="and what it began with",
        ),
        pytest.param("z: the disk\nCaused by: z: the disk", "z: the disk", id="but once"),
        pytest.param("a" * 9_999, "a" * 500, id="not too long"),
        pytest.param(
            "File error\n   \x1b[31m↳\x1b[0m Unable to open a\n    \x1b[31m↳\x1b[0m denied (13)\n",
            "File error: Unable to open a: denied (13)",
            id="every cause of delta-rs",
        ),
        pytest.param(
            f"{CALL}: a\nCaused by: java.io.IOException: No space left on device",
            "no space left on device: free some where the tables are, and where temporary files "
            "are, then run it again; the tables are consistent",
            id="a full disk",
        ),
    ],
)
def test_a_line_of_what_happened(message: str, line: str) -> None:
    assert failures.one_line(Exception(message)) == line


@pytest.mark.parametrize(
    ("message", "again"),
    [
        pytest.param("Caused by: TimeoutException: Timed out", True, id="a broker is away"),
        pytest.param("Python worker exited unexpectedly (crashed)", True, id="a worker was killed"),
        pytest.param("Python worker failed to connect back", True, id="a worker starts too slowly"),
        pytest.param("[DELTA_SCHEMA_CHANGED_WITH_VERSION] Detected", True, id="a column came"),
        pytest.param("[DELTA_CONCURRENT_APPEND] files were", True, id="another job was first"),
        pytest.param("No space left on device", False, id="a full disk"),
        pytest.param("[KAFKA_DATA_LOSS] gone", False, id="records are gone"),
    ],
)
def test_what_is_tried_again(message: str, again: bool) -> None:
    assert failures.is_transient(message) == again


def test_what_spark_cannot_do_is_one_error() -> None:
    with (
        pytest.raises(JobError, match="making the tables failed: no"),
        failures.as_job_error("making the tables"),
    ):
        raise PySparkException("no\nmore")
