"""A line on the terminal while a command works for longer than people wait without a sign."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

SILENT_S = 2.0
_TICK_S = 1.0
_CLEAR = "\r\x1b[K"
_lock = threading.Lock()
_shown = threading.Event()
_is_refused = threading.Event()


def show(is_chosen: bool) -> None:
    """Whether lines are shown from now on, where stderr is a terminal."""
    if is_chosen:
        _is_refused.clear()
    else:
        _is_refused.set()


@contextmanager
def shown(what: str) -> Iterator[None]:
    """Show `what`, and for how long, from two seconds on until the block ends.

    Where stderr is no terminal nothing is shown.
    """
    if _is_refused.is_set() or not sys.stderr.isatty():
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_tick, args=(what, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        clear()


def clear() -> None:
    """Remove the line, if there is one, before something else is printed."""
    with _lock:
        if _shown.is_set():
            _shown.clear()
            _write(_CLEAR)


def _tick(what: str, ended: threading.Event) -> None:
    seconds = SILENT_S
    if ended.wait(SILENT_S):
        return
    while not ended.is_set():
        with _lock:
            _shown.set()
            _write(f"{_CLEAR}{what} ... {seconds:.0f} s")
        ended.wait(_TICK_S)
        seconds += _TICK_S


def _write(text: str) -> None:
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
