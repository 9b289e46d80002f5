"""The line for a query that failed, and whether it starts again."""

import pytest
from pyspark.errors import PySparkException

from quotaflow.pipelines.errors import JobError
from quotaflow.pipelines.spark import failures

from ...cases import cases

CALL = "An error occurred while calling o119.start.\n"


@cases(
    ("message", "line"),
    ("the first line", "one\ntwo", "one"),
    ("nothing", "", "no message"),
    (
        "not which call of ours it was",
        f"{CALL}: java.io.IOException: bad\n\tat a.b.C",
        "java.io.IOException: bad",
    ),
    (
        "and what it began with",
        "aborted\n\tat a\nCaused by: x.Y: job\n\tat b\nCaused by: z: the disk",
        "aborted: z: the disk",
    ),
    ("but once", "z: the disk\nCaused by: z: the disk", "z: the disk"),
    (
        "the cause of which the query is tried again",
        "aborted\nCaused by: x.Y: Python worker exited unexpectedly\nCaused by: z: reset",
        "aborted: x.Y: Python worker exited unexpectedly",
    ),
    (
        "the file for which a task and its worker ended",
        "aborted. Reas: Python worker exited unexpectedly\nCaused by: a.B: Python worker exited "
        "unexpectedly\nCaused by: java.io.IOException: input/output error",
        "java.io.IOException: input/output error, so Spark ended a task",
    ),
    (
        "an error of Python without its traceback",
        'thrown from the worker:\nTraceback (most recent call last):\n  File "a", line 8, in b\n'
        "    c\nZeroDivisionError: by zero\n SQLSTATE: 38000\n\tat d.E",
        "thrown from the worker: ZeroDivisionError: by zero",
    ),
    (
        "the line behind a colon",
        "[DENIED] Unauthorized access:\nno\nmore",
        "[DENIED] Unauthorized access: no",
    ),
    ("not too long", "a" * 9_999, "a" * 500),
    (
        "every cause of delta-rs",
        "File error\n   \x1b[31m↳\x1b[0m Unable to open a\n    \x1b[31m↳\x1b[0m denied (13)\n",
        "File error: Unable to open a: denied (13)",
    ),
    (
        "a full disk",
        f"{CALL}: a\nCaused by: java.io.IOException: No space left on device",
        "no space left on device: free some where the tables are, and where temporary files "
        "are, then run it again; the tables are consistent",
    ),
)
def test_a_line_of_what_happened(message: str, line: str) -> None:
    assert failures.one_line(Exception(message)) == line


@cases(
    ("message", "again"),
    ("a broker is away", "Caused by: TimeoutException: Timed out", True),
    ("a worker was killed", "Python worker exited unexpectedly (crashed)", True),
    (
        "its connection ended with it",
        "Python worker exited unexpectedly\n"
        "Caused by: java.io.IOException: Connection from /10.0.0.5:7337 closed",
        True,
    ),
    (
        "it ended because a file cannot be written",
        "Python worker exited unexpectedly\nCaused by: java.io.IOException: input/output error",
        False,
    ),
    ("a worker starts too slowly", "Python worker failed to connect back", True),
    ("a column came", "[DELTA_SCHEMA_CHANGED_WITH_VERSION] Detected", True),
    ("another job was first", "[DELTA_CONCURRENT_APPEND] files were", True),
    ("a full disk", "No space left on device", False),
    ("records are gone", "[KAFKA_DATA_LOSS] gone", False),
)
def test_what_is_tried_again(message: str, again: bool) -> None:
    assert failures.is_transient(message) == again


def test_what_spark_cannot_do_is_one_error() -> None:
    with (
        pytest.raises(JobError, match="making the tables failed: no"),
        failures.as_job_error("making the tables"),
    ):
        raise PySparkException("no\nmore")
