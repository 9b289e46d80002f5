"""Where and how long the demo's clients run."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from threading import Event

from quotaflow.demo.cluster import LocalCluster


@dataclass(frozen=True, slots=True)
class Stage:
    """Where clients run, for how long at their pace, and the signal to stop early."""

    cluster: LocalCluster
    seed: int
    duration_s: float
    stop: Event = field(default_factory=Event)

    def random(self, client_id: str) -> Random:
        """One source per client, so that one client's pace does not change another's data."""
        return Random(f"{self.seed}/{client_id}")

    def paced(self, total: int) -> Iterator[int]:
        """0, 1, ... total - 1, spread evenly over the duration; ends early at the signal."""
        began_s = time.monotonic()
        for n in range(total):
            due_s = began_s + n * self.duration_s / total
            if self.stop.wait(max(0.0, due_s - time.monotonic())):
                return
            yield n

    def spaced(self, total: int) -> Iterator[int]:
        """0, 1, ... total - 1, as far apart as `paced` spreads them, also after one that is late.

        A process that restarts does not hurry to make up for lost time.
        """
        due_s = 0.0
        for n in range(total):
            if self.stop.wait(max(0.0, due_s - time.monotonic())):
                return
            due_s = time.monotonic() + self.duration_s / total
            yield n
