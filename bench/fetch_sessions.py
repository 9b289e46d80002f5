"""FETCH lines per second through the walk that rebuilds their sessions (KIP-227), on one core.

`python bench/fetch_sessions.py [--json] [--lines N]`. Lines name two to three partitions and are
answered with as many, of sessions of 20 and of 200 partitions; the best of the runs of each case.
Rows come as Spark passes them: a thousand to a batch, sorted by session and time.
"""

import argparse
import json
import sys
import time

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from quotaflow.schemas.tables import requests
from quotaflow.udfs import fetch_sessions
from quotaflow.udfs.fetch_lines import FETCH, ROWS, SESSION

SESSIONS = 100
BATCH_ROWS = 1_000
START_US = 1_795_262_400_000_000
LIMITS = fetch_sessions.Limits(idle_us=3_600_000_000, now_us=START_US * 2)
GOAL_PER_S = 60_000
TIMES_AS_MANY, TIMES_AS_LONG = 10, 11
IDS = [f"topic-id-{n:013d}" for n in range(10)]
_PARTITION = requests.PARTITION


def batches(lines: int, partitions: int) -> list[pa.RecordBatch]:
    """Lines of as many sessions: each names the partitions answered last, the next are answered."""
    dice = np.random.default_rng(partitions)
    each = lines // SESSIONS
    rows = [
        row
        for session_id in range(1, SESSIONS + 1)
        for row in _lines_of(session_id, partitions, dice.integers(2, 4, each).tolist())
    ]
    return [_batch(rows[at : at + BATCH_ROWS]) for at in range(0, len(rows), BATCH_ROWS)]


def _lines_of(
    session_id: int, partitions: int, sizes: list[int]
) -> list[tuple[int, int, list[tuple[int, bool, bool]]]]:
    """Session, epoch, and for each named partition its number and whether it is in each part."""
    responses = [(session_id, 0, [(n, True, True) for n in range(partitions)])]
    first, last = 0, list[int]()
    for epoch, size in enumerate(sizes[1:], 1):
        answered = [n % partitions for n in range(first, first + size)]
        responses.append(
            (
                session_id,
                epoch,
                [(n, True, False) for n in last] + [(n, False, True) for n in answered],
            )
        )
        first, last = first + size, answered
    return responses


def _batch(rows: list[tuple[int, int, list[tuple[int, bool, bool]]]]) -> pa.RecordBatch:
    ids, epochs, named = zip(*rows, strict=True)
    flat = [one for each in named for one in each]
    edges = pa.array(np.concatenate([[0], np.cumsum([len(each) for each in named])]), pa.int32())
    columns = {
        "cluster_id": ["c"] * len(rows),
        "event_time": [START_US + 1_000 * epoch for epoch in epochs],
        "broker_id": [1] * len(rows),
        "principal": ["User:alice"] * len(rows),
        "client_id": [f"consumer-{one}" for one in ids],
        "session_id": [one if epoch else 0 for one, epoch in zip(ids, epochs, strict=True)],
        "session_epoch": epochs,
        "response_session_id": ids,
        "error_code": [0] * len(rows),
        "max_bytes": [52_428_800] * len(rows),
        "isolation_level": [0] * len(rows),
        "session": ids,
        "kind": [FETCH] * len(rows),
    }
    arrays = {f.name: pa.array(columns[f.name], f.type) for f in ROWS if f.name in columns}
    arrays["partitions"] = pa.ListArray.from_arrays(edges, _partitions(flat))
    return pa.RecordBatch.from_arrays(
        [arrays[f.name] if f.name in arrays else pa.nulls(len(rows), f.type) for f in ROWS],
        schema=ROWS,
    )


def _partitions(flat: list[tuple[int, bool, bool]]) -> pa.StructArray:
    numbers, requested, answered = zip(*flat, strict=True)
    offsets = range(len(flat))
    columns = {
        "topic_id": [IDS[n % len(IDS)] for n in numbers],
        "partition": numbers,
        "in_request": requested,
        "in_response": answered,
        "fetch_offset": [n if q else None for n, q in zip(offsets, requested, strict=True)],
        "partition_max_bytes": [1_048_576 if q else None for q in requested],
        "high_watermark": [
            at + 100 if a else None for at, a in zip(offsets, answered, strict=True)
        ],
        "bytes": [700 if a else None for a in answered],
        "error_code": [0 if a else None for a in answered],
    }
    arrays = [
        pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(len(flat), f.type)
        for f in _PARTITION
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(_PARTITION))


def run(given: list[pa.RecordBatch]) -> tuple[float, float]:
    """CPU seconds for all lines, and bytes of a session's row."""
    start = time.process_time()
    out = list(fetch_sessions.follow_sessions(LIMITS)(iter(given)))
    took_s = time.process_time() - start
    lines = sum(batch.num_rows for batch in out if batch.column("kind")[0].as_py() == FETCH)
    states = [batch for batch in out if batch.column("kind")[0].as_py() == SESSION]
    known_lines = sum(batch.column("session_state").to_pylist().count("known") for batch in out)
    if lines != sum(batch.num_rows for batch in given) or known_lines != lines - SESSIONS:
        raise ValueError(f"{lines} lines came out, {known_lines} of them known")
    return took_s, sum(batch.nbytes for batch in states) / SESSIONS


def measure(lines: int, turns: int) -> dict[str, tuple[float, float]]:
    """Lines per second and bytes per session of each case: the best run."""
    cases = {
        "20 partitions": (lines, 20),
        "20 partitions, a tenth of the lines": (lines // TIMES_AS_MANY, 20),
        "200 partitions": (lines, 200),
    }
    figures = {}
    for case, (count, partitions) in cases.items():
        given = batches(count, partitions)
        rows = sum(batch.num_rows for batch in given)
        took = [run(given) for _ in range(turns + 1)]
        figures[case] = rows / min(took_s for took_s, _ in took[1:]), took[0][1]
    return figures


def show(figures: dict[str, tuple[float, float]]) -> Table:
    """Thousands of lines per second, bytes of state, and what ten times the lines cost."""
    many, tenth, _ = (rate for rate, _ in figures.values())
    table = Table("fetch sessions rebuilt", "k lines/s", "bytes per session")
    for case, (rate, size) in figures.items():
        table.add_row(case, f"{rate / 1e3:.1f}", f"{size:,.0f}")
    table.caption = (
        f"{TIMES_AS_MANY} times the lines take {TIMES_AS_MANY * tenth / many:.1f} times as long "
        f"(at most {TIMES_AS_LONG}); the goal is {GOAL_PER_S / 1e3:.0f} k lines/s"
    )
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    parser.add_argument("--lines", type=int, default=200_000, help="lines per case")
    parser.add_argument("--turns", type=int, default=3, help="turns of each case")
    options = parser.parse_args()
    figures = measure(options.lines, options.turns)
    if options.json:
        json.dump(figures, sys.stdout, indent=2)
    else:
        Console().print(show(figures))


if __name__ == "__main__":
    main()
