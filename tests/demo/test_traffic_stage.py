"""The pace of the demo's clients."""

import itertools
import time
from unittest.mock import Mock

from quotaflow.demo.traffic_stage import Stage


def test_a_step_that_is_late_brings_no_burst_after_it() -> None:
    began_s = []
    for step in Stage(Mock(), seed=1, duration_s=0.2).spaced(4):
        began_s.append(time.monotonic())
        time.sleep(0.12 if step == 0 else 0.0)
    gaps = [after - before for before, after in itertools.pairwise(began_s)]
    assert len(gaps) == 3
    assert all(gap >= 0.05 for gap in gaps)
