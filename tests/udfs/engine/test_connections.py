"""Each cursor takes times in UTC, on a machine of any zone."""

import subprocess
import sys

import pytest

PROGRAM = """
from quotaflow.udfs.engine.connections import connect
asked = "SELECT current_setting('TimeZone'), epoch_us(TIMESTAMPTZ '1970-01-01 00:00:00')"
first = connect(threads=1)
for connection in (first, first.cursor(), first.cursor().cursor()):
    print(*connection.execute(asked).fetchone())
"""


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/St_Johns"])
def test_cursors_of_cursors_are_in_utc(zone: str) -> None:
    printed = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"TZ": zone},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    assert printed == "UTC 0\n" * 3
