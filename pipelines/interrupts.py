"""Ctrl-C and kill: as a flag to poll, so that clean-up is not interrupted, and never dropped."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EXIT_CODE = 130
"""Of a command that Ctrl-C ended, as shells have it."""

_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN_S = 0.01


def repeat_dropped() -> None:
    """Let a Ctrl-C come again that Python dropped with a warning.

    Python drops what a destructor or a callback of the garbage collector raises, so a command would
    go on.
    """
    usual, main = sys.unraisablehook, threading.main_thread().ident

    def hook(dropped: "sys.UnraisableHookArgs") -> None:
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            # Later: what this hook raises is dropped too.
            threading.Timer(_AGAIN_S, signal.pthread_kill, (main, signal.SIGINT)).start()
        else:
            usual(dropped)

    sys.unraisablehook = hook


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
