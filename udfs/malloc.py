"""Memory that a batch gave back, kept by the C library for the next batch (mallopt(3), glibc)."""

import ctypes
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 64 << 20
# More than this glibc does not take.
_LARGEST_FROM_HEAP_BYTES = 32 << 20


@cache
def keep_freed() -> bool:
    """Have this process keep what it frees; false where the C library has no such setting.

    Columns of a batch are made and freed at once, megabytes each: by default glibc hands them back
    to the system, and its new pages are a quarter of what decoding the next batch takes.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    asked = ((_MMAP_THRESHOLD, _LARGEST_FROM_HEAP_BYTES), (_TRIM_THRESHOLD, _KEPT_BYTES))
    return all(mallopt(parameter, value) == 1 for parameter, value in asked)
