"""The whole pipeline under load, on a real broker: a backlog drained, live traffic.

`python bench/load.py [--part backlog|live] [--lines N] [--clients N] [--per-s N]
[--minutes N] [--every SPAN] [--set KEY=VALUE ...]`. Lines of `load_lines` are in, or come to, the
request-log topic of a one-broker cluster. `quotaflow run` is the command itself in its own process,
with the default conf except for `--set` and, live, the settings of docs/scaling.md for thousands of
lines a second. Reports lines per second of wall time through every job, the time of each job, and
the peak memory of the command's processes together.

- backlog: the topic is filled, then drained by `run --once`.
- live: lines come at a steady pace beside `run --every`, and every ten seconds the age of the
  newest event of each job is recorded: flat when it keeps up.
"""

import argparse
import signal
import statistics
import subprocess
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path

import load_lines
import load_setting
from rich.console import Console
from rich.table import Table

from quotaflow.pipelines.errors import KafkaError, NeverMadeError

LOGGED_PER_S = 10_000
"""Lines of a backlog per second of the brokers' clocks."""
FOR_MANY = ("ingest.max_offsets_per_trigger=6000000", "spark.driver_memory=12g")
"""Conf of a live load, whose batches are minutes of lines."""
_LOOK_S = 10


@dataclass(frozen=True, slots=True)
class Drained:
    """A backlog, and what draining it took."""

    lines: int
    clients: int
    total_s: float
    jobs_s: dict[str, float]
    peak_bytes: int
    warehouse_bytes: int
    cpu_s: float

    @property
    def lines_per_s(self) -> float:
        """Through every job, with the start of the command."""
        return self.lines / self.total_s


@dataclass(slots=True)
class Live:
    """Lines at a steady pace, and the age of the newest event of each job over time."""

    per_s: int
    sent: int = 0
    ages_s: dict[str, list[float]] = field(default_factory=dict)
    peak_bytes: int = 0
    cpu_s: float = 0

    def after_batches(self, job: str) -> list[tuple[int, float]]:
        """Time in seconds, and age of the newest event, after each batch."""
        looks = list(enumerate(self.ages_s[job]))
        return [
            (n * _LOOK_S, age_s)
            for (_, before_s), (n, age_s) in pairwise(looks)
            if age_s < before_s
        ]

    def slope(self, job: str) -> float | None:
        """Seconds of age gained per second from batch to batch, over the second half: 0 is flat.

        Between two batches age always grows by a second each second, so only its value just after a
        batch counts. None with fewer than two batches.
        """
        half_s = len(self.ages_s[job]) * _LOOK_S / 2
        late = [(at_s, age_s) for at_s, age_s in self.after_batches(job) if at_s >= half_s]
        if len(late) < 2:
            return None
        return statistics.linear_regression(*zip(*late, strict=True)).slope


def drain(lines: int, clients: int, overrides: list[str]) -> Drained:
    """Fill the topic, then run every job once."""
    with load_setting.setting(clients) as (cluster, conf):
        start_ms = int((time.time() - lines / LOGGED_PER_S) * 1_000)
        load_setting.send(cluster, islice(load_lines.lines(clients, start_ms, LOGGED_PER_S), lines))
        began, jobs_s = time.monotonic(), dict[str, float]()
        with (
            subprocess.Popen(
                load_setting.command(conf, "--once", *overrides), stderr=subprocess.PIPE, text=True
            ) as process,
            load_setting.watched(process.pid) as seen,
        ):
            assert process.stderr is not None
            job, since, messages = "", began, list[str]()
            for line in process.stderr:
                messages.append(line)
                name = line.partition(": reading ")[0].rpartition(" ")[2]
                if ": reading " in line and name in load_setting.JOBS:
                    jobs_s |= {job: time.monotonic() - since} if job else {}
                    job, since = name, time.monotonic()
            jobs_s[job] = time.monotonic() - since
        if process.returncode:
            raise KafkaError("".join(messages[-5:]))
        total_s = time.monotonic() - began
        warehouse = conf.parent / "warehouse"
        _check(conf, lines)
        size = sum(f.stat().st_size for f in warehouse.rglob("*") if f.is_file())
        return Drained(lines, clients, total_s, jobs_s, int(seen[0]), size, seen[1])


def live(per_s: int, minutes: float, clients: int, every: str, overrides: list[str]) -> Live:
    """Send lines at a pace while the command runs, and record the age of its newest events."""
    measured = Live(per_s)
    count = int(per_s * minutes * 60)
    with load_setting.setting(clients) as (cluster, conf):
        lines = islice(load_lines.lines(clients, int(time.time() * 1_000), per_s), count)
        sender = threading.Thread(
            target=lambda: setattr(measured, "sent", load_setting.send(cluster, lines, per_s))
        )
        with (
            subprocess.Popen(
                load_setting.command(conf, "--every", every, *overrides), stderr=subprocess.DEVNULL
            ) as process,
            load_setting.watched(process.pid) as seen,
        ):
            sender.start()
            while sender.is_alive() and process.poll() is None:
                time.sleep(_LOOK_S)
                for job, age_s in _ages(conf).items():
                    measured.ages_s.setdefault(job, []).append(age_s)
            if process.poll() is not None:
                raise KafkaError(f"quotaflow run ended by itself: {process.returncode}")
            process.send_signal(signal.SIGINT)
        measured.peak_bytes, measured.cpu_s = int(seen[0]), seen[1]
    return measured


def _ages(conf: Path) -> dict[str, float]:
    try:
        rows = load_setting.ask(
            conf, "SELECT job, max(event_time) AS newest FROM pipeline_progress GROUP BY job"
        )
    except NeverMadeError:
        return {}
    return {row["job"]: time.time() - row["newest"].timestamp() for row in rows}


def _check(conf: Path, lines: int) -> None:
    got = load_setting.ask(conf, "SELECT count(*) AS n FROM requests")[0]["n"]
    if got != lines:
        raise KafkaError(f"{got} rows of {lines} lines")


def show_drained(one: Drained) -> Table:
    """Lines per second, seconds per job and memory."""
    titles = ("clients", "lines", "k lines/s", "CPU us per line", *one.jobs_s, "peak GB")
    table = Table(*titles, "GB of tables", title="backlog")
    table.add_row(
        *(f"{one.clients:,}", f"{one.lines:,}", f"{one.lines_per_s / 1e3:.1f}"),
        *(f"{one.cpu_s / one.lines * 1e6:.1f}", *(f"{s:.0f} s" for s in one.jobs_s.values())),
        *(f"{one.peak_bytes / 1e9:.1f}", f"{one.warehouse_bytes / 1e9:.2f}"),
    )
    return table


def show_live(measured: Live) -> Table:
    """For each job the age of its newest event, and whether that grew."""
    names = ("job", "batches", "age at first", "median", "at last", "gained per s")
    table = Table(*names, title="live")
    for job, ages in measured.ages_s.items():
        shown = (ages[0], statistics.median(ages), ages[-1])
        batches = str(len(measured.after_batches(job)) + 1)
        slope = measured.slope(job)
        gained = "too few" if slope is None else f"{slope:+.2f} s"
        table.add_row(job, batches, *(f"{a:.0f} s" for a in shown), gained)
    table.caption = (
        f"{measured.sent:,} lines at {measured.per_s:,} per s, {measured.peak_bytes / 1e9:.1f} GB, "
        f"{measured.cpu_s / max(measured.sent, 1) * 1e6:.1f} us of CPU per line"
    )
    return table


def _set(values: Iterable[str]) -> list[str]:
    return [part for value in values for part in ("--set", value)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("backlog", "live"), help="one part alone")
    parser.add_argument("--lines", type=int, default=1_000_000, help="lines of the backlog")
    parser.add_argument("--clients", type=int, default=200, help="clients")
    parser.add_argument("--per-s", type=int, default=10_000, help="lines per second, live")
    parser.add_argument("--minutes", type=float, default=24, help="minutes, live")
    parser.add_argument("--every", default="240s", help="between two batches of a job, live")
    parser.add_argument("--set", action="append", default=[], help="change one value of conf")
    options = parser.parse_args()
    overrides = _set(options.set)
    # If a shell's & made this process ignore Ctrl-C, the command would ignore it too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parts = [options.part] if options.part else ["backlog", "live"]
    console = Console(width=150)
    for part in parts:
        if part == "live":
            pace = options.per_s, options.minutes, options.clients, options.every
            table = show_live(live(*pace, [*_set(FOR_MANY), *overrides]))
        else:
            table = show_drained(drain(options.lines, options.clients, overrides))
        console.print(table)


if __name__ == "__main__":
    main()
