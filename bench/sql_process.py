"""What it costs that `sql` answers in a process of its own: the command with it and without it.

`python bench/sql_process.py [--rounds N] [--warehouse FOLDER]`, after `make demo`. They take turns.
Medians of CPU seconds of the process tree, and of wall seconds.
"""

import argparse
import os
import statistics
import sys
from pathlib import Path

from month import cost

from quotaflow.pipelines import config

_WITHOUT = """
import sys
from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.warehouse import query_process, readers
query_process.batches = lambda conf, ask: ask(readers.open_reader(conf))
sys.exit(execute(sys.argv[1:]))
"""
WAYS = {"a process of its own": ["-m", "quotaflow.pipelines"], "without": ["-c", _WITHOUT]}


def main() -> None:
    """Print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--warehouse", type=Path, default=config.home() / "warehouse")
    arguments = parser.parse_args()
    words = ["sql", "SELECT 1", "--set", f"warehouse.path={arguments.warehouse}"]
    costs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(arguments.rounds):
        for way, start in WAYS.items():
            costs[way].append(cost([sys.executable, *start, *words], dict(os.environ)))
    for way, each in costs.items():
        cpu, wall = (statistics.median(c[unit] for c in each) for unit in ("CPU s", "s"))
        print(f"{way}: {cpu:.2f} CPU s, {wall:.2f} s")


if __name__ == "__main__":
    main()
