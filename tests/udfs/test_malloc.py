"""Memory that a batch frees is kept for the next one, not returned to the system."""

import platform
import subprocess
import sys

from quotaflow.udfs.malloc import keep_freed

IS_GLIBC = platform.libc_ver()[0] == "glibc"
PASSES, COLUMNS, COLUMN_BYTES = 20, 16, 1 << 20
SCRIPT = f"""
import resource, sys
import numpy as np
from quotaflow.udfs.malloc import keep_freed

if sys.argv[1] == "kept":
    keep_freed()

def columns():
    return [np.ones({COLUMN_BYTES}, np.uint8) for _ in range({COLUMNS})]

columns()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({PASSES}):
    columns()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(how: str) -> int:
    """Pages that passes after the first were given anew, in a process of its own."""
    command = [sys.executable, "-c", SCRIPT, how]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def test_it_says_whether_the_c_library_takes_it() -> None:
    assert keep_freed() is IS_GLIBC


def test_columns_of_the_next_batch_take_the_pages_of_the_last_where_it_does() -> None:
    assert (4 * page_faults("kept") < page_faults("given back")) is IS_GLIBC
