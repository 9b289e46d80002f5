"""Memory that a batch gave back, kept by the C library for the next batch (mallopt(3), glibc)."""

import ctypes
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
KEPT_BYTES = 64 << 20
"""How much of what was given back a process may keep for itself."""
_MOST_MMAP_THRESHOLD = 32 << 20


@cache
def keep_freed() -> bool:
    """Have this process keep what it frees; false where the C library has no such setting.

    Columns of a batch are made and freed at once, megabytes each: by default glibc hands them back
    to the system, whose pages cost as much again to fill as half of what is computed in them.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    asked = ((_MMAP_THRESHOLD, _MOST_MMAP_THRESHOLD), (_TRIM_THRESHOLD, KEPT_BYTES))
    return all(mallopt(parameter, value) == 1 for parameter, value in asked)
