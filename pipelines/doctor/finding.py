"""The result of one check of doctor."""

from collections.abc import Callable
from dataclasses import dataclass

from quotaflow.pipelines.errors import QuotaflowError

OK, WARNING, BAD, UNCHECKED = "ok", "warning", "bad", "unchecked"


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked subject: its state, what was observed, and the remedy.

    BAD must be fixed; a WARNING need not; UNCHECKED could not be checked from here.
    """

    subject: str
    state: str
    observed: str
    remedy: str = ""


def from_check(subject: str, check: Callable[[], str]) -> Finding:
    """What a check observed, or the error it raised."""
    try:
        return Finding(subject, OK, check())
    except QuotaflowError as error:
        return from_error(subject, error)


def from_error(subject: str, error: QuotaflowError) -> Finding:
    """A finding from one of our errors, which end in the remedy after their last colon."""
    observed, _, remedy = str(error).rpartition(": ")
    return Finding(subject, BAD, observed or remedy, remedy if observed else "")


def refused(subject: str, reason: str, needed: str) -> Finding:
    """A check that a broker refused or did not answer, with Kafka's error name."""
    return Finding(subject, UNCHECKED, f"unknown: {reason}", needed)
