"""Have the C library keep the memory that a batch frees for the next one (mallopt(3), glibc)."""

import ctypes
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 64 << 20
# glibc accepts no more.
_LARGEST_FROM_HEAP_BYTES = 32 << 20


@cache
def keep_freed() -> bool:
    """Have this process keep memory that it frees; false if the C library has no such setting.

    Columns of a batch are allocated and freed together, megabytes each. By default glibc returns
    them to the system, and new pages then cost a quarter of the time to decode the next batch.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    settings = ((_MMAP_THRESHOLD, _LARGEST_FROM_HEAP_BYTES), (_TRIM_THRESHOLD, _KEPT_BYTES))
    return all(mallopt(parameter, value) == 1 for parameter, value in settings)
