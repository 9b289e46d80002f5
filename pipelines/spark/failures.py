"""Failures of queries: whether to start the query again, and one line for the user."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from quotaflow.pipelines.errors import JobError, QuotaflowError, ReceiverAwayError
from quotaflow.pipelines.spark import catalog_errors
from quotaflow.pipelines.spark.spark_errors import bridge_errors, spark_errors

_LINE_CHARS = 500
_CALL = "An error occurred while calling"
_CAUSE = "Caused by: "
# delta-rs writes each cause of an error into a line of its own, with an arrow in color.
_CAUSE_OF_DELTA_RS = re.compile(r"\s*(?:\x1b\[\d+m)?↳(?:\x1b\[0m)?\s*")
# Python's errors in workers and in functions of batches: what is left is the error itself.
_TRACEBACK = re.compile(r"\s*Traceback \(most recent call last\):\n(?:[ \t]+.*\n)*")
_WORKER_ENDED = "Python worker exited unexpectedly"
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
    _WORKER_ENDED,
    # A machine at its limit starts one too slowly: Spark waits for 15 s.
    "Python worker failed to connect back",
    # A column was added to a table that is read: a query that starts again reads it.
    "DELTA_SCHEMA_CHANGED",
    # Two jobs replaced rows of the same partition at the same time.
    "DELTA_CONCURRENT",
)
_FAULTS = (TypeError, ValueError, AttributeError, LookupError, AssertionError, EOFError)
_NO_SPACE = ("No space left on device", "Disk quota exceeded")
_OF_FILES = ("java.io.IOException: ", "java.nio.file.", "org.rocksdb.")
_OF_CONNECTIONS = ("connect", "socket", "pipe", "closed", "timed out", "timeout", "eof", "host")


def is_transient(message: str) -> bool:
    """Whether a failed query is worth starting again as it is."""
    signs = [sign for sign in _TRANSIENT if sign in message]
    return bool(signs) and not (signs == [_WORKER_ENDED] and any(_of_files(_causes(message))))


def is_receiver_away(message: str) -> bool:
    """Whether a query failed only because the receiver of its points does not answer."""
    return ReceiverAwayError.__name__ in message


def one_line(error: BaseException) -> str:
    """The error and its first cause, or that for which a query is tried again, in one line.

    Every error of Spark that a user sees goes through here: no stack trace of Java does.
    """
    message = _TRACEBACK.sub(" ", _CAUSE_OF_DELTA_RS.sub(": ", str(error)))
    if explained := catalog_errors.explained(message):
        return str(explained)
    no_space = next((words for words in _NO_SPACE if words in message), None)
    if no_space:
        return (
            f"{no_space.lower()}: free some where the tables are, and where temporary files are, "
            "then run it again; the tables are consistent"
        )
    lines = [text.strip() for text in message.splitlines() if text.strip()] or ["no message"]
    if lines[0].startswith(_CALL) and lines[1:]:
        lines = [lines[1].removeprefix(": "), *lines[2:]]
    first = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
    causes = _causes(message)
    if is_transient(message):
        causes = list(filter(is_transient, causes)) or causes
    elif _WORKER_ENDED in message and (of_files := _of_files(causes)):
        return f"{of_files[-1]}, so Spark ended a task"[:_LINE_CHARS]
    if causes and causes[-1] not in first:
        first = f"{first[: _LINE_CHARS // 2]}: {causes[-1]}"
    return first[:_LINE_CHARS]


def _causes(message: str) -> list[str]:
    lines = (text.strip() for text in message.splitlines())
    return [text.removeprefix(_CAUSE) for text in lines if text.startswith(_CAUSE)]


def _of_files(causes: Sequence[str]) -> list[str]:
    """Those of files that cannot be written or read: such a task ends its worker too."""
    of_files = [cause for cause in causes if cause.startswith(_OF_FILES)]
    return [each for each in of_files if not any(sign in each.lower() for sign in _OF_CONNECTIONS)]


@contextmanager
def as_job_error(what: str) -> Iterator[None]:
    """Turn errors of Spark within the block into one JobError that starts with `what`."""
    try:
        yield
    except spark_errors() as error:
        raise JobError(f"{what} failed: {one_line(error)}") from error


def as_error(error: Exception) -> QuotaflowError | None:
    """The error of a command that an error of Spark ends; None for a fault of our own.

    PySpark raises its kinds of Python's own errors where its functions are used in a wrong way.
    """
    if not isinstance(error, bridge_errors()) or isinstance(error, _FAULTS):
        return None
    return catalog_errors.explained(str(error)) or JobError(f"Spark: {one_line(error)}")
