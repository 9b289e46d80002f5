"""What the request log costs a broker: CPU for each request, and p99 of produce and fetch.

`python bench/observe.py [--rates 200,800,2400] [--seconds N] [--rounds N]`. One broker is
observed, another one has the log topic. The logging of the observed broker changes while it runs,
so that all settings are of one warm JVM; they take turns. The shipper is rsyslog of Debian: its
column is empty where the packages cannot be had.
"""

import argparse
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path

import observe_load
import psutil
from observe_setting import SETTINGS, Observed, observed
from rich.console import Console
from rich.table import Table

SETTLE_S, WARM_S = 2.5, 1.0
Figures = dict[str, float | None]


@contextmanager
def shipping(setting: str, site: Observed) -> Iterator[subprocess.Popen[bytes] | None]:
    """The shipper's process, if the setting has one that can run."""
    if setting != "file and rsyslog" or site.rsyslog is None:
        yield None
        return
    for state in site.folder.glob("imfile-state*"):
        state.unlink()
    with subprocess.Popen(site.rsyslog, env=site.rsyslog_environment) as process:
        yield process
        process.terminate()
        process.wait(30)


def idle_share(site: Observed, seconds: float) -> float:
    """The share of a core that the broker takes without load and without a log."""
    site.log_by(SETTINGS[0])
    time.sleep(SETTLE_S)
    before, began = cpu_s(site.broker_pid), time.perf_counter()
    time.sleep(seconds)
    return (cpu_s(site.broker_pid) - before) / (time.perf_counter() - began)


def one(site: Observed, setting: str, rate: int, seconds: float, idle: float) -> Figures:
    """Figures of one setting at one rate, less what an idle broker takes."""
    site.log_by(setting)
    time.sleep(SETTLE_S)
    with ExitStack() as stack:
        shipper = stack.enter_context(shipping(setting, site))
        observe_load.run(site.cluster, rate, WARM_S)
        before, written, began = cpu_s(site.broker_pid), site.written(), time.perf_counter()
        rsyslog_s = cpu_s(shipper.pid) if shipper else None
        took = observe_load.run(site.cluster, rate, seconds)
        requests = sum(map(len, took.values()))
        time.sleep(SETTLE_S)
        idle_s = idle * (time.perf_counter() - began)
        figures: Figures = {"cpu_us": (cpu_s(site.broker_pid) - before - idle_s) / requests * 1e6}
        figures["shipper_us"] = None
        if shipper and rsyslog_s is not None:
            figures["shipper_us"] = (cpu_s(shipper.pid) - rsyslog_s) / requests * 1e6
        site.check(setting, written)
    figures["requests_per_s"] = requests / seconds
    for name, each in took.items():
        figures[f"{name}_p99_ms"] = statistics.quantiles(each, n=100)[98] * 1e3
    return figures


def cpu_s(pid: int) -> float:
    """CPU seconds of one process."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def measured(rates: list[int], seconds: float, rounds: int) -> list[dict[str, object]]:
    """The median of each figure over the rounds, by setting and rate."""
    taken: dict[tuple[int, str], list[Figures]] = {}
    with tempfile.TemporaryDirectory() as name, observed(Path(name)) as site:
        for setting in SETTINGS:  # until all of it is compiled
            site.log_by(setting)
            time.sleep(SETTLE_S)
            observe_load.run(site.cluster, max(rates), seconds)
        for _ in range(rounds):
            idle = idle_share(site, seconds)
            for rate, setting in product(rates, SETTINGS):
                figures = one(site, setting, rate, seconds, idle)
                taken.setdefault((rate, setting), []).append(figures)
    return [
        {"rate": rate, "setting": setting, **medians(each)}
        for (rate, setting), each in taken.items()
    ]


def medians(rounds: list[Figures]) -> Figures:
    """The median of each figure that every round has."""
    columns = {name: [figures[name] for figures in rounds] for name in rounds[0]}
    whole = {name: [v for v in values if v is not None] for name, values in columns.items()}
    return {
        name: statistics.median(values) if len(values) == len(rounds) else None
        for name, values in whole.items()
    }


def show(rows: list[dict[str, object]]) -> None:
    """A table with the ratio of each setting to the log switched off at the same rate."""
    table = Table("rate", "setting", "req/s", "broker us/req", "ratio", "shipper us/req", "p99 ms")
    off = {row["rate"]: row["cpu_us"] for row in rows if row["setting"] == SETTINGS[0]}
    for row in rows:
        cpu_us, base = float(str(row["cpu_us"])), float(str(off[row["rate"]]))
        shipper = "" if row["shipper_us"] is None else f"{row['shipper_us']:.0f}"
        table.add_row(
            str(row["rate"]),
            str(row["setting"]),
            f"{row['requests_per_s']:.0f}",
            f"{cpu_us:.0f}",
            f"{cpu_us / base:.2f}",
            shipper,
            f"{row['produce_p99_ms']:.1f}, {row['fetch_p99_ms']:.1f}",
        )
    Console(width=110).print(table)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", default="200,800,2400")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    rows = measured([int(each) for each in args.rates.split(",")], args.seconds, args.rounds)
    show(rows)


if __name__ == "__main__":
    main()
