"""What a refresh of answers costs, and a read of `desired_configs` after it.

`python bench/refresh.py [--json] [--warehouse FOLDER] [--rounds N]`, after `make demo`. Each round
works on a copy of the warehouse without answers: a refresh that computes all of them; one where
nothing changed; one that computes all and finds the rows that are there; and the read. CPU seconds
of this process.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cpu import cpu_s
from rich.console import Console
from rich.table import Table

from quotaflow.pipelines import config
from quotaflow.pipelines.results.answers.refresh import refresh
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse.tables import open_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = {answer.name for answer in ANSWERS}


def no_session() -> "SparkSession":
    """In a folder nothing needs a session."""
    raise AssertionError("a session was opened")


def cost(work: Callable[[], object]) -> float:
    """The CPU seconds of some work."""
    before = cpu_s()
    work()
    return cpu_s() - before


def measure(demo: Path) -> dict[str, float]:
    """CPU seconds of one round, by what was done."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "warehouse"
        skipped = shutil.ignore_patterns(*NAMES, "answer_state", "checkpoints")
        shutil.copytree(demo, folder, ignore=skipped)
        conf = config.Conf(warehouse=config.WarehouseSection(path=str(folder)))

        def refreshed() -> list[str]:
            return refresh(conf.warehouse, no_session, datetime.now(UTC), print)

        measured = {"all computed": cost(refreshed), "nothing changed": cost(refreshed)}
        # Without the versions of inputs, each answer is computed, and has the rows that it had.
        shutil.rmtree(folder / "answer_state")
        measured["all computed, same rows"] = cost(refreshed)
        read = cost(lambda: open_tables(conf).rows("SELECT * FROM desired_configs"))
        return measured | {"desired_configs": read}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--warehouse", type=Path, default=config.home() / "warehouse")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    rounds = [measure(given.warehouse.resolve()) for _ in range(given.rounds)]
    if given.json:
        json.dump(rounds, sys.stdout, indent=2)
        return
    table = Table("round", *rounds[0])
    for number, measured in enumerate(rounds):
        table.add_row(str(number + 1), *(f"{seconds:.2f}" for seconds in measured.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
