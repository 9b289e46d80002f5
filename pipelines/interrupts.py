"""Ctrl-C and kill: as a flag to poll, so that clean-up is not interrupted, and never dropped."""

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

EXIT_CODE = 130
"""Of a command that Ctrl-C ended, as shells have it."""

_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN_S = 0.01
_JUST_S = 10.0


class _CtrlC:
    came_at = -math.inf


def watch() -> None:
    """Note when Ctrl-C comes, and let one come again that Python dropped with a warning.

    Python drops what a destructor or a callback of the garbage collector raises, so a command would
    go on.
    """
    usual, main = sys.unraisablehook, threading.main_thread().ident
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        with suppress(ValueError):  # a thread that is not the main one, as in a notebook
            signal.signal(signal.SIGINT, _note)

    def hook(dropped: "sys.UnraisableHookArgs") -> None:
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            # Later: what this hook raises is dropped too.
            threading.Timer(_AGAIN_S, signal.pthread_kill, (main, signal.SIGINT)).start()
        else:
            usual(dropped)

    sys.unraisablehook = hook


def _note(*_: object) -> NoReturn:
    _CtrlC.came_at = time.monotonic()
    raise KeyboardInterrupt


def is_just_pressed() -> bool:
    """Whether Ctrl-C came a moment ago: then it is the cause of any error.

    DuckDB raises RuntimeError in its place, and a native module that it cut off while it was
    imported fails in its own way when it is named again.
    """
    return time.monotonic() - _CtrlC.came_at < _JUST_S


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
