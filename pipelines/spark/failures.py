"""Failures of queries: whether to start the query again, and one line for the user.

It says what is wrong with a name or a right in a catalog, and what to do.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from quotaflow.pipelines.errors import ConfigError, JobError, QuotaflowError, ReceiverAwayError
from quotaflow.pipelines.spark.spark_errors import bridge_errors, spark_errors

_LINE_CHARS = 500
_CALL = "An error occurred while calling"
_CAUSE = "Caused by: "
# delta-rs writes each cause of an error into a line of its own, with an arrow in color.
_CAUSE_OF_DELTA_RS = re.compile(r"\s*(?:\x1b\[\d+m)?↳(?:\x1b\[0m)?\s*")
# Python's errors in workers and in functions of batches: what is left is the error itself.
_TRACEBACK = re.compile(r"\s*Traceback \(most recent call last\):\n(?:[ \t]+.*\n)*")
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
_FAULTS = (TypeError, ValueError, AttributeError, LookupError, AssertionError, EOFError)
_NO_SPACE = ("No space left on device", "Disk quota exceeded")


def is_transient(message: str) -> bool:
    """Whether a failed query is worth starting again as it is."""
    return any(sign in message for sign in _TRANSIENT)


def is_receiver_away(message: str) -> bool:
    """Whether a query failed only because the receiver of its points does not answer."""
    return ReceiverAwayError.__name__ in message


def one_line(error: BaseException) -> str:
    """The error and its first cause, or that for which a query is tried again, in one line.

    Every error of Spark that a user sees goes through here: no stack trace of Java does.
    """
    message = _TRACEBACK.sub(" ", _CAUSE_OF_DELTA_RS.sub(": ", str(error)))
    if problem := explained(message):
        return str(problem)
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
    causes = [text.removeprefix(_CAUSE) for text in lines if text.startswith(_CAUSE)]
    causes = list(filter(is_transient, causes)) or causes
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


def as_error(error: Exception) -> QuotaflowError | None:
    """The error of a command that an error of Spark ends; None for a fault of our own.

    PySpark raises its kinds of Python's own errors where its functions are used in a wrong way.
    """
    if not isinstance(error, bridge_errors()) or isinstance(error, _FAULTS):
        return None
    return explained(str(error)) or JobError(f"Spark: {one_line(error)}")


_PARTS = r"(?P<name>(?:`[^`]+`\.?)+|'[^']+'|[\w.]+)"
_CATALOGS = tuple(
    re.compile(pattern + _PARTS, re.S)
    for pattern in (
        # The catalog of a local session has schemas alone, and takes any other for one of them.
        r"\[REQUIRES_SINGLE_PART_NAMESPACE\].*?identifier ",
        "Nested databases are not supported by v1 session catalog: ",
        r"\[CATALOG_NOT_FOUND\] The catalog ",
        r"\[NO_SUCH_CATALOG_EXCEPTION\] Catalog ",
    )
)
_SCHEMAS = re.compile(r"\[SCHEMA_NOT_FOUND\] The schema " + _PARTS)
_TABLES = re.compile(
    r"\[(?:TABLE_OR_VIEW_NOT_FOUND\] The table or view|DELTA_TABLE_NOT_FOUND\] Delta table) "
    + _PARTS
)
# Unity Catalog says this after [INSUFFICIENT_PERMISSIONS] or PERMISSION_DENIED, and table access
# control of a Hive metastore after the first.
_RIGHTS = re.compile(
    r"does not have (?:permission )?(?P<right>[A-Z][A-Z_ ,]*[A-Z]) on "
    r"(?P<kind>[A-Za-z]+(?: [A-Za-z]+)?)(?: ?(?P<name>'[^']+'|(?:`[^`]+`\.?)+))?"
)


def explained(message: str) -> QuotaflowError | None:
    """The error for a catalog, schema or table that is not there, or a right that is missing.

    Takes the whole message of Spark, or what is around it; None if it is about something else.
    """
    if match := _RIGHTS.search(message):
        right, kind, name = match["right"], match["kind"], _sql_name(match["name"] or "")
        return JobError(
            f"this login lacks {right} on {' '.join([kind.lower(), name]).strip()}: let its owner "
            f"run {_grant(right, kind, name)}; `quotaflow ddl --grants` prints all rights"
        )
    for pattern in _CATALOGS:
        if match := pattern.search(message):
            return _no_catalog(_sql_name(match["name"]))
    if match := _SCHEMAS.search(message):
        return _no_schema(_sql_name(match["name"]))
    if match := _TABLES.search(message):
        name = _sql_name(match["name"])
        return ConfigError(
            f"no table or view {name}, or this login may not see it: correct the name, make it as "
            f"`quotaflow ddl` prints, or let its owner run {_grant('SELECT', 'TABLE', name)}"
        )
    return None


def _no_catalog(name: str) -> QuotaflowError:
    catalog, _, rest = name.partition(".")
    where = f" of {name}" if rest else ""
    return ConfigError(
        f"no catalog {catalog}{where} here: correct warehouse.catalog_schema, or run the command "
        "where that catalog is: by warehouse.sql_warehouse, SPARK_REMOTE, or a job of Databricks"
    )


def _no_schema(name: str) -> QuotaflowError:
    return ConfigError(
        f"no schema {name}, or this login may not use it: correct warehouse.catalog_schema, make "
        f"it with CREATE SCHEMA {name}, or let its owner run {_grant('USE SCHEMA', 'SCHEMA', name)}"
    )


def _grant(right: str, kind: str, name: str) -> str:
    return " ".join(["GRANT", right, "ON", *filter(None, [kind.upper(), name]), "TO `LOGIN`"])


def _sql_name(text: str) -> str:
    """A name as Spark prints it, with as few quotes as SQL takes."""
    parts = re.findall(r"[^`.]+", text) if "`" in text else text.strip("'.").split(".")
    return ".".join(part if re.fullmatch(r"\w*", part) else f"`{part}`" for part in parts)
