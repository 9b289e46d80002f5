"""What the loop does to each plant: the table of docs/feedback.md."""

import random
from statistics import median

from quotaflow.pipelines.feedback.change import APPLY

from .simulator import CYCLE, PLANTS, Simulation, offender

RUNS, CYCLES, CALM = 5, 144, 40
"""Runs of each plant: a day of offences, and the time after it."""
HEAD = ("the offence", "writes in a day", "hours limited", "least value / p99", "left behind")


def table() -> list[tuple[str, ...]]:
    """A row for each plant: medians over its runs, which are always the same."""
    return [_row(plant) for plant in PLANTS]


def lines() -> list[str]:
    """The table in Markdown."""
    rows = [HEAD, ("---",) * len(HEAD), *table()]
    return [f"| {' | '.join(row)} |" for row in rows]


def _row(plant: str) -> tuple[str, ...]:
    writes, hours, least, left = [], [], [], 0
    for seed in range(RUNS):
        dice = random.Random(seed)
        one = offender(dice, plant, seed, CYCLES)
        simulation = Simulation([one], dice, is_signed=False)
        simulation.run(CYCLES)
        hours.append(simulation.limited[one.name] * CYCLE.total_seconds() / 3_600)
        applied = [w for w in simulation.writes if w.change.purpose == APPLY]
        writes.append(len(simulation.writes))
        least.append(min((float(w.after or 0) / one.p99 for w in applied), default=1.0))
        simulation.run(CALM)
        left += simulation.value(one) is not None
    return (
        plant,
        f"{median(writes):.0f}",
        f"{median(hours):.1f}",
        f"{median(least):.2f}",
        f"{left} of {RUNS}",
    )
