"""Runs a module with a clock that is so many days ahead: `python -m tests.other_clock DAYS MODULE`.

Days below 0: behind. The clock of C code, which names files, stays right.
"""

import datetime
import runpy
import sys
import time

import pandas as pd

_now = time.time


def main(days: str, module: str) -> None:
    """Run the module as a program; what follows its name are its arguments."""
    shift = float(days) * 86_400

    class Shifted(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> "Shifted":
            return cls.fromtimestamp(_now() + shift, tz)

    time.time = lambda: _now() + shift
    time.time_ns = lambda: int((_now() + shift) * 1e9)
    datetime.datetime = Shifted  # type: ignore[misc]  # of all that is imported from now on
    assert pd  # its C code needs the class as it is
    sys.argv = sys.argv[2:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:3])
