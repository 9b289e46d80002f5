"""Made-up FETCH lines of sessions (KIP-227), as Arrow batches of a thousand.

Lines name two to three partitions and are answered with as many. Rows come sorted by session and
time.
"""

import numpy as np
import pyarrow as pa

from quotaflow.schemas.tables import requests
from quotaflow.udfs.fetch_lines import FETCH, ROWS

SESSIONS = 100
BATCH_ROWS = 1_000
START_US = 1_795_262_400_000_000
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
