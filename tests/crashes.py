"""A run that is killed between two of its steps."""

from collections.abc import Callable


class CrashError(Exception):
    """The process ended here, as far as the records show."""


def crash_at(death: object) -> Callable[[str], None]:
    """What a run calls at each step: it ends the run at one of them."""

    def passed(step: str) -> None:
        if step == death:
            raise CrashError

    return passed
