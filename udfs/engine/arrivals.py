"""Counts new facts by result and bucket: what a streaming query hands to the driver."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from quotaflow.schemas.table import BOOLEAN, LONG, STRING, TIMESTAMP
from quotaflow.udfs.engine.database import opened
from quotaflow.udfs.engine.rule import Batches

ARRIVALS = pa.schema(
    [
        pa.field("result", STRING),
        pa.field("cluster_id", STRING),
        pa.field("is_late", BOOLEAN),
        pa.field("bucket", TIMESTAMP),
        pa.field("rows", LONG),
        pa.field("latest", TIMESTAMP),
    ]
)
"""New facts that concern a result, by the bucket that they affect: null for late facts, which
affect none. `latest` is their newest event time. A worker may give several rows of one bucket."""

_CHUNK_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class Interest:
    """Which facts a result reads, as SQL of DuckDB, and how long its buckets are."""

    result: str
    relevant: str
    bucket_s: int


def count_arrivals(
    interests: Sequence[Interest], max_lateness_s: int | None
) -> Callable[[Batches], Batches]:
    """A function for mapInArrow: the columns that `interests` name in, ARRIVALS out.

    A fact whose record is more than `max_lateness_s` later than its event is late. None is for
    facts without a record.
    """

    def run(batches: Batches) -> Batches:
        for rows in _chunks(batches):
            yield from _counted(rows, interests, max_lateness_s)

    return run


def _chunks(batches: Batches) -> Iterator[pa.Table]:
    """Batches joined to larger ones: a query costs as much over ten rows as over thousands."""
    kept: list[pa.RecordBatch] = []
    for batch in batches:
        kept.append(batch)
        if sum(each.num_rows for each in kept) >= _CHUNK_ROWS:
            yield pa.Table.from_batches(kept)
            kept = []
    if any(batch.num_rows for batch in kept):
        yield pa.Table.from_batches(kept)


def _counted(rows: pa.Table, interests: Sequence[Interest], max_lateness_s: int | None) -> Batches:
    counts = " UNION ALL ".join(map(_count, interests))
    is_late = "false"
    if max_lateness_s is not None:
        took_us = "epoch_us(record_time) - epoch_us(event_time)"
        # Of a record without a time nobody knows: its fact is in time.
        is_late = f"coalesce({took_us} > {max_lateness_s * 1_000_000}, false)"
    with opened({"facts": rows}) as database:
        sql = f"WITH arrived AS (SELECT *, {is_late} AS is_late FROM facts) {counts}"
        yield from database.query(sql, ARRIVALS)


def _count(interest: Interest) -> str:
    return f"""
        SELECT
            '{interest.result}' AS result, cluster_id, is_late,
            if(is_late, NULL, floored(event_time, {interest.bucket_s})) AS bucket,
            count(*) AS rows, max(event_time) AS latest
        FROM arrived
        WHERE event_time IS NOT NULL AND ({interest.relevant})
        GROUP BY ALL"""
