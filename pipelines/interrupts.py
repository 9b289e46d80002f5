"""Ctrl-C and kill as something to look at: what must be put back is put back undisturbed."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def noted() -> Iterator[Callable[[], bool]]:
    """Within, SIGINT, SIGTERM and SIGHUP interrupt nothing, however many come.

    What is yielded tells whether one came. Those that are ignored (nohup) stay so. Only the main
    thread may use it.
    """
    came = threading.Event()
    heeded = [ending for ending in _ENDINGS if signal.getsignal(ending) != signal.SIG_IGN]
    before = {ending: signal.signal(ending, lambda *_: came.set()) for ending in heeded}
    try:
        yield came.is_set
    finally:
        for ending, handler in before.items():
            signal.signal(ending, handler)
