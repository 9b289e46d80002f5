"""What the loop does to each plant: the tables of docs/feedback.md."""

import random
from collections.abc import Iterable
from statistics import median

from quotaflow.pipelines.feedback.configs.change import APPLY

from .simulator import CYCLE, DAY, PLANTS, Offender, Simulation, offender

RUNS, CYCLES, CALM = 5, 144, 150
"""Runs of each plant: a day of offences, and the time after it, which is longer than a lease."""
HEAD = ("the offence", "writes in a day", "hours limited", "least value", "left behind")
CROWDS = (1, 2, 3, 6, 20)
CROWD_HEAD = ("offenders", "steady: limited", "writes a day", "flapping: limited", "writes a day")
_DAYS = 2


def lines(plants: Iterable[str]) -> list[str]:
    """What happens to one offender, in Markdown."""
    return _markdown(HEAD, [_row(plant) for plant in plants])


def crowd_lines(crowds: Iterable[int]) -> list[str]:
    """What happens to many at once over two days: share of time limited, and writes in a day."""
    rows = [(str(n), *_crowd("steady", n), *_crowd("flapping", n)) for n in crowds]
    return _markdown(CROWD_HEAD, rows)


def _markdown(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows)]


def _row(plant: str) -> tuple[str, ...]:
    writes, hours, least, left = [], [], [], 0
    for seed in range(RUNS):
        dice = random.Random(seed)
        one = offender(dice, plant, seed, CYCLES)
        simulation = Simulation([one], dice, is_signed=False)
        simulation.run(CYCLES)
        hours.append(simulation.limited[one.name] * CYCLE.total_seconds() / 3_600)
        writes.append(len(simulation.writes))
        values = [float(w.after or 0) for w in simulation.writes if w.change.purpose == APPLY]
        least.append(min(values))
        simulation.run(CALM)
        left += simulation.value(one) is not None
    return (
        plant,
        f"{median(writes):.0f}",
        f"{median(hours):.1f}",
        f"{median(least):.0f}",
        f"{left} of {RUNS}",
    )


def _crowd(plant: str, number: int) -> tuple[str, str]:
    cycles = _DAYS * (DAY // CYCLE)
    crowd = [Offender(f"10.0.0.{n}", plant, 20.0, PLANTS[plant], cycles) for n in range(number)]
    simulation = Simulation(crowd, random.Random(0), is_signed=False)
    simulation.run(cycles)
    share = sum(simulation.limited.values()) / cycles / number
    return f"{share:.2f}", f"{len(simulation.writes) / _DAYS:.0f}"
