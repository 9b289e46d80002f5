"""Sightings of producer ids per second, from facts to rates: by number of principals, and by size.

`python bench/producer_ids.py [--json] [--events N]`. Facts are in Parquet files; rates have no
sink. Events per second of wall time, the best of the runs of each case. The rule runs on one core,
as in a task. For comparison the obvious way on two cores: applyInPandasWithState, a filter per
principal in its state, counts per second alone (no exact count, rate, tokens or quota).
"""

import argparse
import json
import pickle
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.streaming.state import GroupState
from rich.console import Console
from rich.table import Table

from quotaflow.pipelines import config
from quotaflow.pipelines.config import ProducerIdsSection
from quotaflow.pipelines.engine import local
from quotaflow.pipelines.engine.computation import CARRIED
from quotaflow.pipelines.results.producer_ids import producer_id_rates
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.warehouse.time_ranges import EVER
from quotaflow.schemas.tables.producer_ids import PRODUCER_ID_RATES
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.udfs.engine.rule import Files
from quotaflow.udfs.producer_ids import KEY
from quotaflow.udfs.rules.timed_filter import TimedBloomFilter

PRINCIPALS = (100, 10_000, 100_000)
DURATION_S = 600
START_US = 1_795_262_400_000_000
FILES = 4
BROKERS = 3
GOAL_PER_S = 80_000
TIMES_AS_MANY, TIMES_AS_LONG = 10, 11
STATEFUL = "100 principals, applyInPandasWithState"
COUNTED = "second BIGINT, sightings BIGINT, new_ids BIGINT"


def write_facts(folder: Path, events: int, principals: int) -> None:
    """Rows of requests over ten minutes; every second sighting is of an id seen before."""
    dice = np.random.default_rng(principals)
    folder.mkdir()
    fields = {name: REQUESTS.arrow.field(name).type for name in REQUESTS.column_names}
    for part in range(FILES):
        rows = events // FILES
        principal = dice.integers(0, principals, rows)
        time_us = START_US + np.sort(dice.integers(0, DURATION_S * 1_000_000, rows))
        columns = {
            "cluster_id": pa.array(["c"] * rows),
            "event_time": pa.array(time_us).view(fields["event_time"]),
            "record_time": pa.array(time_us).view(fields["record_time"]),
            "broker_id": pa.array(principal % BROKERS, fields["broker_id"]),
            "principal": pa.array([f"User:{n}" for n in principal]),
            "producer_id": pa.array(dice.integers(0, max(events // 2, 1), rows)),
            "error_code": pa.array(np.zeros(rows), fields["error_code"]),
        }
        pq.write_table(pa.table(columns), folder / f"{part}.parquet")


def run(folder: Path) -> float:
    """Seconds from facts to rates."""
    start = time.perf_counter()
    files = tuple(sorted(map(str, folder.glob("*.parquet"))))
    relations = {
        REQUESTS.name: Files(files, REQUESTS.arrow),
        CARRIED: PRODUCER_ID_RATES.arrow.empty_table(),
    }
    computation = producer_id_rates.result(ProducerIdsSection()).computation([EVER])
    assert local.compute_over(computation, relations).num_rows > 0
    return time.perf_counter() - start


def run_stateful(spark: SparkSession, folder: Path) -> float:
    """Seconds from facts to counts per second, with the filters in state."""
    start = time.perf_counter()
    stream = spark.readStream.schema(REQUESTS.sql_schema).parquet(str(folder))
    relevant = stream.where(producer_id_rates.result(ProducerIdsSection()).relevant)
    seen = relevant.selectExpr(*KEY, "unix_millis(event_time) AS event_ms", "producer_id")
    counts = seen.groupBy(*KEY).applyInPandasWithState(
        _count, COUNTED, "seen BINARY", "append", "NoTimeout"
    )
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = counts.writeStream.format("noop").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()
    return time.perf_counter() - start


def _count(
    _key: object, frames: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    conf = ProducerIdsSection()
    bounds = conf.filter_items, conf.filter_false_positive_rate, conf.window_ms
    seen = pickle.loads(state.get[0]) if state.exists else TimedBloomFilter(*bounds)
    rows = pd.concat(frames).sort_values("event_ms")
    pairs = zip(rows["producer_id"], rows["event_ms"], strict=True)
    rows["is_new"] = [seen.first_sighting(producer_id, time_ms) for producer_id, time_ms in pairs]
    state.update((pickle.dumps(seen),))
    by_second = rows.groupby(rows["event_ms"] // 1_000)["is_new"].agg(["size", "sum"])
    yield by_second.reset_index().set_axis(["second", "sightings", "new_ids"], axis=1)


def measure(events: int, turns: int) -> dict[str, float]:
    """Events per second of each case: the best run after a warm-up."""
    cases = {f"{n:,} principals": (events, n) for n in PRINCIPALS}
    cases[f"{PRINCIPALS[1]:,} principals, a tenth of the events"] = (
        events // TIMES_AS_MANY,
        PRINCIPALS[1],
    )
    cases[STATEFUL] = events, PRINCIPALS[0]
    spark = session.get(config.SparkSection(master="local[2]", driver_memory="4g"))
    try:
        with tempfile.TemporaryDirectory() as name:
            folders = {case: Path(name) / str(i) for i, case in enumerate(cases)}
            for case, folder in folders.items():
                write_facts(folder, *cases[case])
            took_s: dict[str, list[float]] = {case: [] for case in cases}
            for _ in range(turns + 1):
                for case, folder in folders.items():
                    took_s[case].append(
                        run_stateful(spark, folder) if case == STATEFUL else run(folder)
                    )
            return {case: cases[case][0] / min(took_s[case][1:]) for case in cases}
    finally:
        spark.stop()


def show(rates: dict[str, float]) -> Table:
    """Thousands of events per second, flatness, and what ten times the events cost."""
    few, some, _, tenth, _ = rates.values()
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
    parser.add_argument("--turns", type=int, default=3, help="runs of each case")
    options = parser.parse_args()
    rates = measure(options.events, options.turns)
    if options.json:
        json.dump(rates, sys.stdout, indent=2)
    else:
        Console().print(show(rates))


if __name__ == "__main__":
    main()
