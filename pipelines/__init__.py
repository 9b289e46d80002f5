"""The driver. While a command imports its modules, Ctrl-C ends it without a traceback."""

import sys

if sys.argv[0].rpartition("/")[2] in ("-m", "quotaflow"):
    _shown = sys.excepthook
    sys.excepthook = lambda kind, *rest: (
        None if issubclass(kind, KeyboardInterrupt) else _shown(kind, *rest)
    )
