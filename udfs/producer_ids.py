"""Which sightings of producer ids are new (KIP-936), over rows sorted by key and time."""

from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa

from quotaflow.schemas.table import BOOLEAN, INT, LONG, STRING
from quotaflow.udfs.engine.rule import Batches
from quotaflow.udfs.key_runs import key_at, key_runs
from quotaflow.udfs.rules.timed_filter import TimedBloomFilter

KEY = ("cluster_id", "broker_id", "principal")
ORDER = (*KEY, "event_ms", "producer_id")

SIGHTINGS = pa.schema(
    [
        pa.field("cluster_id", STRING),
        pa.field("broker_id", INT),
        pa.field("principal", STRING),
        pa.field("event_ms", LONG),
        pa.field("producer_id", LONG),
    ]
)
FLAGGED = SIGHTINGS.append(pa.field("is_new", BOOLEAN))


def flag_new_ids(
    expected_items: int, false_positive_rate: float, window_ms: int
) -> Callable[[Batches], Batches]:
    """A function for a Walk: SIGHTINGS sorted by ORDER in, the same rows as FLAGGED out.

    `is_new`: the timed filter of the row's KEY had not seen the id (KIP-936). One call reads all
    rows with one filter at a time, so its cost does not grow with the number of keys. Times and ids
    must not be null. Further columns pass through; `is_new` comes last.
    """
    begin = partial(TimedBloomFilter, expected_items, false_positive_rate, window_ms)
    begin()  # a bad bound fails here, not in a worker
    return partial(_flag, begin)


def _flag(begin: Callable[[], TimedBloomFilter], batches: Batches) -> Iterator[pa.RecordBatch]:
    seen = begin()
    last_key = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        times_ms, ids = _integers(batch, "event_ms"), _integers(batch, "producer_id")
        is_new: list[bool] = []
        for start, end in key_runs(batch, KEY):
            if start > 0 or key_at(batch, KEY, 0) != last_key:
                seen = begin()
            is_new.extend(map(seen.first_sighting, ids[start:end], times_ms[start:end]))
        last_key = key_at(batch, KEY, batch.num_rows - 1)
        yield batch.append_column(FLAGGED.field("is_new"), pa.array(is_new, BOOLEAN))


def _integers(batch: pa.RecordBatch, name: str) -> list[int]:
    column = batch.column(name)
    if column.null_count:
        raise ValueError(f"{name} must not be null, got {column.null_count} null rows")
    integers: list[int] = column.to_numpy().tolist()
    return integers
