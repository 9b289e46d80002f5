"""30,000 partitions with three replicas each: memory is bounded by chunks, not by the cluster."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from . import many_partitions

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", many_partitions.__name__]
MOST_MIB = 200


@pytest.mark.faults
def test_all_of_it_is_taken_in_within_bounds() -> None:
    completed = subprocess.run(COMMAND, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    measured = json.loads(completed.stdout)
    assert measured["rows"]["replicas"] == measured["rows"]["replica_sizes"] == 90_000
    assert (measured["rows"]["active_producers"], measured["rows"]["configs"]) == (60_000, 10_000)
    assert measured["grown_mib"] < MOST_MIB
