"""Ctrl-C and kill as a flag to poll, so that clean-up is not interrupted."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EXIT_CODE = 130
"""Of a command that Ctrl-C ended, as shells have it."""

_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def noted() -> Iterator[Callable[[], bool]]:
    """Note SIGINT, SIGTERM and SIGHUP within the block, instead of being interrupted by them.

    Yields a function that returns whether a signal arrived. Ignored signals (nohup) stay ignored.
    Only the main thread may use it.
    """
    arrived = threading.Event()
    handled = [ending for ending in _ENDINGS if signal.getsignal(ending) != signal.SIG_IGN]
    before = {ending: signal.signal(ending, lambda *_: arrived.set()) for ending in handled}
    try:
        yield arrived.is_set
    finally:
        for ending, handler in before.items():
            signal.signal(ending, handler)


def stop_reason(is_interrupted: Callable[[], bool]) -> Callable[[], str | None]:
    """A hook that gives the reason to stop before the next write; None while there is none."""
    return lambda: "interrupted" if is_interrupted() else None
