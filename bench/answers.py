"""Commands that only read: seconds until they end, over the tables of a folder.

`python bench/answers.py --warehouse FOLDER [--json] [--rounds N]`, such as the folder of
`quotaflow demo`. Each command is a process of its own, without a JVM; the least of the rounds.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

COMMANDS = {
    "sql, a table": ("sql", "SELECT api, count(*) AS n FROM requests GROUP BY api"),
    "sql, a view": ("sql", "SELECT count(*) AS n FROM client_latency"),
    "sql, SHOW TABLES": ("sql", "SHOW TABLES"),
    "show, a table": ("show", "requests", "--limit", "5"),
    "show, a view": ("show", "quota_headroom", "--limit", "5"),
    "tables": ("tables",),
    "tables, a search": ("tables", "throttle"),
    "plan": ("plan",),
    "status": ("status",),
    "report": ("report", "--out", "-"),
}
_CHANGES_WAIT = 3
# What `status` says of tables that no job has filled for a while.
_UNHEALTHY = 1


def took_s(words: tuple[str, ...], warehouse: Path) -> tuple[float, float]:
    """Wall and CPU seconds of one command."""
    command = [sys.executable, "-m", "quotaflow.pipelines", *words]
    place = ["--set", f"warehouse.path={warehouse}"]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.run([*command, *place], capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = {0, _CHANGES_WAIT, _UNHEALTHY} if words[0] == "status" else {0, _CHANGES_WAIT}
    if process.returncode not in ended:
        raise RuntimeError(f"{' '.join(words)}: {process.stderr.strip()}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu


def measure(warehouse: Path, rounds: int) -> dict[str, tuple[float, float]]:
    """The least wall and CPU seconds of each command."""
    taken = {
        name: [took_s(words, warehouse) for _ in range(rounds)] for name, words in COMMANDS.items()
    }
    return {
        name: (min(wall for wall, _ in each), min(cpu for _, cpu in each))
        for name, each in taken.items()
    }


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warehouse", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    words = parser.parse_args()
    measured = measure(words.warehouse, words.rounds)
    if words.json:
        print(json.dumps(measured))
        return
    table = Table("command", "seconds", "CPU seconds")
    for name, (wall, cpu) in measured.items():
        table.add_row(name, f"{wall:.2f}", f"{cpu:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
