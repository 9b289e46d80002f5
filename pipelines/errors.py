"""The errors that a user can get: each message has the value, the bound, and what to do."""

import difflib
from collections.abc import Sequence
from pathlib import Path


class QuotaflowError(Exception):
    """Root of all errors quotaflow raises on purpose; `exit_code` is the command's."""

    exit_code = 1


class ConfigError(QuotaflowError):
    """Conf or a command line is wrong; nothing was started."""

    exit_code = 2


class MissingToolError(QuotaflowError):
    """Something that quotaflow needs is missing on this machine: a JDK, a jar, a Python package."""


class OutputError(QuotaflowError):
    """The standard output takes no more."""


class JarError(QuotaflowError):
    """A fetched jar differs from the tested one in its sha256."""


class LockedError(QuotaflowError):
    """Another process writes to this warehouse; the message names it."""


class CheckpointError(QuotaflowError):
    """A checkpoint does not belong to these tables or this topic: going on would lose rows."""


class KafkaError(QuotaflowError):
    """The cluster cannot be reached, refused the login, or does not have a topic."""


class FeedbackError(QuotaflowError):
    """Nothing may be written to the cluster now; the message has the reason and what to do."""


class JobError(QuotaflowError):
    """A job failed, and a new start does not help. Rows that it wrote are consistent."""


class ReceiverAwayError(QuotaflowError):
    """The receiver of the points of clients does not answer: the batch is sent again later."""


class NeverMadeError(QuotaflowError):
    """A declared table does not exist in the warehouse's folder or object store yet."""

    def __init__(self, table: str, location: Path | str) -> None:
        super().__init__(f"table {table} was never made in {location}")
        self.table, self.location = table, str(location)


class QueryError(QuotaflowError):
    """A query that cannot be answered, with the SQL engine's message in one line."""


class WrongQueryError(QueryError):
    """A query that is no SQL, or that names a table, column or function that is not there."""

    exit_code = 2


class DamagedError(QueryError):
    """Files of a table are lost or broken; the message has them, what is lost, and what to do."""

    def __init__(self, table: str, text: str) -> None:
        super().__init__(text)
        self.table = table


_MAX_NAMED = 60


def nearest(name: str, candidates: Sequence[str]) -> str:
    """The end of an error on a wrong name: the candidate most like it, or all of them."""
    near = difflib.get_close_matches(name.lower(), candidates, n=1, cutoff=0.5)
    if near:
        return f" (did you mean {near[0]}?)"
    if len(candidates) > _MAX_NAMED:
        return f" (none of the {len(candidates)} names is like it)"
    return f" (known: {', '.join(candidates)})"
