"""30,000 partitions with three replicas each: memory is bounded by chunks, not by the cluster."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("many_partitions.py")
MOST_MIB = 200


@pytest.mark.faults
def test_all_of_it_is_taken_in_within_bounds() -> None:
    said = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=True)
    found = json.loads(said.stdout)
    assert found["rows"]["replicas"] == found["rows"]["replica_sizes"] == 90_000
    assert (found["rows"]["active_producers"], found["rows"]["configs"]) == (60_000, 10_000)
    assert found["grown_mib"] < MOST_MIB
