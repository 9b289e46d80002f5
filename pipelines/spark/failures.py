"""Failures of queries: whether to start the query again, and one line for the user."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from quotaflow.pipelines.errors import JobError
from quotaflow.pipelines.spark.spark_errors import spark_errors

_LINE_CHARS = 500
_CALL = "An error occurred while calling"
_CAUSE = "Caused by: "
# delta-rs writes each cause of an error into a line of its own, with an arrow in color.
_CAUSE_OF_DELTA_RS = re.compile(r"\s*(?:\x1b\[\d+m)?↳(?:\x1b\[0m)?\s*")
_TRANSIENT = (
    # The cluster is unreachable, or a leader moved.
    "TimeoutException",
    "DisconnectException",
    "Failed to create new KafkaAdminClient",
    "NotLeaderOrFollower",
    "LeaderNotAvailable",
    "NetworkException",
    "BrokerNotAvailable",
    "CoordinatorNotAvailable",
    # A worker was killed, perhaps by the kernel because of its memory.
    "Python worker exited unexpectedly",
    # A machine at its limit starts one too slowly: Spark waits for 15 s.
    "Python worker failed to connect back",
    # A column was added to a table that is read: a query that starts again reads it.
    "DELTA_SCHEMA_CHANGED",
    # Two jobs replaced rows of the same partition at the same time.
    "DELTA_CONCURRENT",
)
_NO_SPACE = ("No space left on device", "Disk quota exceeded")


def is_transient(message: str) -> bool:
    """Whether a failed query is worth starting again as it is."""
    return any(sign in message for sign in _TRANSIENT)


def one_line(error: BaseException) -> str:
    """The error and its first cause, in one line."""
    message = _CAUSE_OF_DELTA_RS.sub(": ", str(error))
    no_space = next((words for words in _NO_SPACE if words in message), None)
    if no_space:
        return (
            f"{no_space.lower()}: free some where the tables are, and where temporary files are, "
            "then run it again; the tables are consistent"
        )
    lines = [text.strip() for text in message.splitlines() if text.strip()] or ["no message"]
    first = lines[1].removeprefix(": ") if lines[0].startswith(_CALL) and lines[1:] else lines[0]
    causes = [text.removeprefix(_CAUSE) for text in lines if text.startswith(_CAUSE)]
    if causes and causes[-1] not in first:
        first = f"{first[: _LINE_CHARS // 2]}: {causes[-1]}"
    return first[:_LINE_CHARS]


@contextmanager
def as_job_error(what: str) -> Iterator[None]:
    """Turn errors of Spark within the block into one JobError that starts with `what`."""
    try:
        yield
    except spark_errors() as error:
        raise JobError(f"{what} failed: {one_line(error)}") from error
