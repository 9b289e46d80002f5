"""What questions and batches cost where there is a past, against targets and a peer.

`python bench/month.py [--part PART ...] [--warehouse FOLDER] [--json]`, after `make demo`. CPU
seconds, wall time and peak memory of a process for each command.

- questions: commands over the warehouses of `CASES`, which have the demo's newest rows again, and
  upkeep once a day: its last one ran just before.
- live: results of a minute at 10,000 lines/s, with a day of files before it.
- cold, backlog: `run --once` over 20,000 lines, and over `--lines`.
- peer: the same lines and questions in ClickHouse (`bench/peer.py`).
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import answers
import load
import past
import peer
import results
from rich.console import Console
from rich.table import Table

from quotaflow.pipelines import config
from quotaflow.schemas.tables.catalog import ANSWERS, EVENTS, TABLES

GROWING = (*sorted(EVENTS), "pipeline_progress", "query_progress", "replica_sizes")
"""Tables that get rows while nothing changes."""
APART, PER_DAY = timedelta(minutes=45), 32
"""A demo has some 11,000 lines, so each 45 minutes that is 4 lines/s."""
FILES, PER_S, LINES, CLIENTS, COLD = 5_760, 10_000, 2_000_000, 200, 20_000
QUESTIONS = {
    "all answers": (),
    "why": ("why", "dave"),
    "report": ("report", "--out", "{scratch}/report.html"),
    "plan": ("plan",),
    "status": ("status",),
    "tables": ("tables",),
    "show": ("show", "throttled_clients"),
    "sql": ("sql", "SELECT count(*) FROM requests WHERE event_time >= '{newest}'"),
}
UPKEEP = {"upkeep": ("upkeep",), "upkeep again": ("upkeep",)}
TARGETS = {
    ("why: a day of small files", "CPU s"): (3, "2"),
    ("why: a day of small files", "MB"): (500, ""),
    ("report: a day of small files", "CPU s"): (8, "5"),
    ("why: 30 days, 4 lines/s", "CPU s"): (3, "as over the demo alone"),
    ("why: 30 days, 400 lines/s, a thousand groups", "CPU s"): (6, "as over the demo alone"),
    ("all answers: 30 days, 4 lines/s", "CPU s"): (4, "2"),
    ("results: a live minute", "us a line"): (9, "6"),
    ("run --once: a backlog", "us a line"): (65, "40"),
    ("run --once: 20,000 lines, cold", "CPU s"): (40, "30"),
    ("run --once: 20,000 lines, cold", "s"): (35, ""),
    ("upkeep: 3 days", "CPU s"): (15, "9"),
}
"""For a work and unit: what it must reach, and the goal."""
SLOW_DAY = 1.2
Measured = Iterator[tuple[str, dict[str, float]]]


@dataclass(frozen=True, slots=True)
class Case:
    """A warehouse made of a demo's: so many days, copies of the newest 45 minutes, small files."""

    days: int = 0
    copies: int = 1
    files: int = 0
    commands: tuple[str, ...] = tuple(QUESTIONS)


CASES = {
    "the demo alone": Case(),
    "3 days": Case(days=3, commands=tuple(UPKEEP)),
    "30 days, 4 lines/s": Case(days=30),
    # Copies have groups of other names, and the demo has nine.
    "30 days, 400 lines/s, a thousand groups": Case(days=30, copies=112),
    "a day of small files": Case(files=FILES),
}


def make(demo: Path, folder: Path, case: Case) -> None:
    """Make the warehouse of a case, of links to the files of a demo where they do not change."""
    for source in sorted(demo.iterdir()):
        name, target = source.name, folder / source.name
        is_table = (source / "_delta_log").is_dir() and name in TABLES
        if is_table and name in GROWING and case.days:
            days = (range(n * PER_DAY, (n + 1) * PER_DAY) for n in reversed(range(case.days)))
            past.repeat(source, target, ((-n * APART for n in reversed(day)) for day in days))
        elif source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, folder)
        has_names = is_table and {*past.NAMES} & {*TABLES[name].column_names}
        if case.copies > 1 and has_names and name not in ANSWERS:
            past.repeat(source, target, [[timedelta(0)]], range(1, case.copies))
    if case.files:
        past.add_small_files(folder, case.files)


def questions(demo: Path, scratch: Path) -> Measured:
    """What each command costs over each warehouse."""
    for name, case in CASES.items():
        folder = scratch / "warehouse"
        folder.mkdir()
        make(demo, folder, case)
        at = answers.newest_event(folder) - timedelta(minutes=5)
        parts = {"scratch": str(scratch), "newest": at.isoformat()}
        environment = os.environ | {"QUOTAFLOW__WAREHOUSE__PATH": str(folder)}
        if case.days and "upkeep" not in case.commands:
            cost([sys.executable, "-m", "quotaflow.pipelines", "upkeep"], environment)
        for command in case.commands:
            words = (QUESTIONS | UPKEEP)[command]
            arguments = ["-m", "quotaflow.pipelines", *(each.format(**parts) for each in words)]
            measured = cost([sys.executable, *arguments], environment) if words else refresh(folder)
            yield f"{command}: {name}", measured
        shutil.rmtree(folder)


def refresh(folder: Path) -> dict[str, float]:
    """What all answers cost, in a process of their own."""
    command = [sys.executable, str(Path(__file__).with_name("answers.py")), str(folder)]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    measured: dict[str, float] = json.loads(printed)
    return measured


def cost(command: Sequence[str], environment: dict[str, str]) -> dict[str, float]:
    """CPU seconds, wall seconds and peak memory of a process, and its exit code."""
    started = time.monotonic()
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return {
        "CPU s": usage.ru_utime + usage.ru_stime,
        "s": time.monotonic() - started,
        "MB": usage.ru_maxrss / 1024,
        "exit": process.returncode,
    }


def live() -> Measured:
    """All results of a minute, the sum of jobs and levels in the cheaper of two rounds."""
    measured = results.live(PER_S, minutes=12, rounds=2, files=FILES)
    rounds = {row["round"] for row in measured}
    sums = [sum(row["cpu_s"] for row in measured if row["round"] == n) for n in rounds]
    lines = PER_S * 60
    yield "results: a live minute", {"CPU s": min(sums), "us a line": min(sums) / lines * 1e6}


def once(name: str, lines: int) -> Measured:
    """`run --once` over so many lines in a topic."""
    drained = load.drain(lines, CLIENTS, [])
    yield (
        f"run --once: {name}",
        {
            "CPU s": drained.cpu_s,
            "s": drained.total_s,
            "MB": drained.peak_bytes / 1e6,
            "us a line": drained.cpu_s / lines * 1e6,
        },
    )


def show(measured: dict[str, dict[str, float]]) -> Iterator[Table]:
    """All figures, and those that have a target."""
    units = list(dict.fromkeys(unit for each in measured.values() for unit in each))
    table = Table("work", *units)
    for name, each in measured.items():
        table.add_row(name, *(f"{each[unit]:.4g}" if unit in each else "" for unit in units))
    yield table
    table = Table("work", "unit", "today", "must", "goal", "reached")
    for (name, unit), (must, goal) in TARGETS.items():
        if name in measured:
            today = measured[name][unit]
            reached = "yes" if today <= must else "within 1.2" if today <= must * SLOW_DAY else "no"
            table.add_row(name, unit, f"{today:.3g}", str(must), goal, reached)
    yield table


def main() -> None:
    """Measure each part, print what it cost."""
    parts = ("questions", "live", "cold", "backlog", "peer")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", action="append", choices=parts)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--warehouse", type=Path, default=config.home() / "warehouse")
    parser.add_argument("--lines", type=int, default=LINES)
    given = parser.parse_args()
    measured = dict[str, dict[str, float]]()
    with tempfile.TemporaryDirectory() as scratch:
        making = {
            "questions": lambda: questions(given.warehouse, Path(scratch)),
            "live": live,
            "cold": lambda: once("20,000 lines, cold", COLD),
            "backlog": lambda: once("a backlog", given.lines),
            "peer": lambda: peer.measure(Path(scratch)),
        }
        for part in given.part or parts:
            for name, each in making[part]():
                measured[name] = each
                print(name, json.dumps(each), file=sys.stderr, flush=True)
    if given.json:
        print(json.dumps(measured))
        return
    for table in show(measured):
        Console().print(table)


if __name__ == "__main__":
    main()
