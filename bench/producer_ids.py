"""Sightings of producer ids per second, from facts to rates: by number of principals, and by size.

`python bench/producer_ids.py [--json] [--events N]`. Facts lie in Parquet files, rates go nowhere;
events per second of wall time on two cores, the best of the turns each case takes.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from quotaflow.pipelines import config, session
from quotaflow.pipelines.results import producer_id_rates
from quotaflow.pipelines.results.result import Known
from quotaflow.schemas import tables

PRINCIPALS = (100, 10_000, 100_000)
SPAN_S = 600
START_US = 1_795_262_400_000_000
FILES = 4
BROKERS = 3
GOAL_PER_S = 80_000
TIMES_AS_MANY, TIMES_AS_LONG = 10, 11


def write_facts(folder: Path, events: int, principals: int) -> None:
    """Rows of requests over ten minutes; of two sightings one is of an id seen before."""
    dice = np.random.default_rng(principals)
    folder.mkdir()
    fields = {name: tables.REQUESTS.arrow.field(name).type for name in tables.REQUESTS.column_names}
    for part in range(FILES):
        rows = events // FILES
        who = dice.integers(0, principals, rows)
        time_us = START_US + np.sort(dice.integers(0, SPAN_S * 1_000_000, rows))
        columns = {
            "cluster_id": pa.array(["c"] * rows),
            "event_time": pa.array(time_us).view(fields["event_time"]),
            "record_time": pa.array(time_us).view(fields["record_time"]),
            "broker_id": pa.array(who % BROKERS, fields["broker_id"]),
            "principal": pa.array([f"User:{n}" for n in who]),
            "producer_id": pa.array(dice.integers(0, max(events // 2, 1), rows)),
            "error_code": pa.array(np.zeros(rows), fields["error_code"]),
        }
        pq.write_table(pa.table(columns), folder / f"{part}.parquet")


def run(spark: SparkSession, folder: Path) -> float:
    """Seconds from facts to rates."""
    start = time.perf_counter()
    seen = producer_id_rates.sightings(spark.read.parquet(str(folder)))
    rates = producer_id_rates.rates(Known(seen), conf=config.ProducerIds())
    rates.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def measure(events: int, turns: int) -> dict[str, float]:
    """Events per second of each case: the best turn after one to warm up."""
    cases = {f"{n:,} principals": (events, n) for n in PRINCIPALS}
    cases[f"{PRINCIPALS[1]:,} principals, a tenth of the events"] = (
        events // TIMES_AS_MANY,
        PRINCIPALS[1],
    )
    spark = session.get(config.Spark(master="local[2]", driver_memory="4g"))
    try:
        with tempfile.TemporaryDirectory() as name:
            folders = {case: Path(name) / str(i) for i, case in enumerate(cases)}
            for case, folder in folders.items():
                write_facts(folder, *cases[case])
            took_s: dict[str, list[float]] = {case: [] for case in cases}
            for _ in range(turns + 1):
                for case, folder in folders.items():
                    took_s[case].append(run(spark, folder))
            return {case: cases[case][0] / min(took_s[case][1:]) for case in cases}
    finally:
        spark.stop()


def show(rates: dict[str, float]) -> Table:
    """Thousands of events per second, flatness, and what ten times the events cost."""
    few, some, _, tenth = rates.values()
    longer = TIMES_AS_MANY * tenth / some
    table = Table("producer ids, facts to rates", "k events/s", "to 100 principals")
    for case, rate in rates.items():
        table.add_row(case, f"{rate / 1e3:.1f}", f"{rate / few:.2f}x")
    table.caption = (
        f"{TIMES_AS_MANY} times the events take {longer:.1f} times as long "
        f"(at most {TIMES_AS_LONG}); the goal is {GOAL_PER_S / 1e3:.0f} k events/s"
    )
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="events per second as JSON")
    parser.add_argument("--events", type=int, default=1_000_000, help="events per case")
    parser.add_argument("--turns", type=int, default=3, help="turns of each case")
    options = parser.parse_args()
    rates = measure(options.events, options.turns)
    if options.json:
        json.dump(rates, sys.stdout, indent=2)
    else:
        Console().print(show(rates))


if __name__ == "__main__":
    main()
