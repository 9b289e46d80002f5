"""What doctor says of one thing it looked at."""

from collections.abc import Callable
from dataclasses import dataclass

from quotaflow.pipelines.errors import QuotaflowError

OK, WARNING, BAD, UNCHECKED = "ok", "warning", "bad", "unchecked"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: how it is, what was seen, and what to do about it.

    Bad must be mended; a warning need not; what is unchecked could not be seen from here.
    """

    subject: str
    state: str
    observed: str
    remedy: str = ""


def from_check(subject: str, check: Callable[[], str]) -> Finding:
    """What a look saw, or the error it raised."""
    try:
        return Finding(subject, OK, check())
    except QuotaflowError as error:
        return from_error(subject, error)


def from_error(subject: str, error: QuotaflowError) -> Finding:
    """Our errors end in what to do, after their last colon."""
    seen, _, remedy = str(error).rpartition(": ")
    return Finding(subject, BAD, seen or remedy, remedy if seen else "")


def refused(subject: str, reason: str, needed: str) -> Finding:
    """A look that a broker refused or did not answer, by the name Kafka has for that."""
    return Finding(subject, UNCHECKED, f"not told: {reason}", needed)
