"""The few errors a user can meet: each says what was seen, what is allowed, and what to do."""

from pathlib import Path


class QuotaflowError(Exception):
    """Root of all errors quotaflow raises on purpose; `exit_code` is the command's."""

    exit_code = 1


class ConfigError(QuotaflowError):
    """Conf or a command line that cannot be right: nothing was started."""

    exit_code = 2


class MissingToolError(QuotaflowError):
    """This machine lacks something quotaflow needs: a JDK, a jar, a Python package."""


class JarError(QuotaflowError):
    """A fetched jar is not the one that was tested: its sha256 differs."""


class LockedError(QuotaflowError):
    """Somebody else writes to this warehouse; the message says who."""


class CheckpointError(QuotaflowError):
    """A checkpoint that does not belong to these tables or this topic: going on would lose rows."""


class KafkaError(QuotaflowError):
    """The cluster could not be reached, refused the login, or lacks a topic."""


class FeedbackError(QuotaflowError):
    """Nothing may be written to the cluster now: the message says why, and what to do."""


class JobError(QuotaflowError):
    """A job failed and starting it again would not help; what it wrote so far is whole."""


class NeverMadeError(QuotaflowError):
    """A declared table that is not in the warehouse's folder yet."""

    def __init__(self, table: str, folder: Path) -> None:
        super().__init__(f"table {table} was never made in {folder}")
        self.table = table
