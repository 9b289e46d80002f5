"""Kafka records as texts: bytes of any encoding, times of any producer, batches of any size."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.schemas.table import BINARY, INT, LONG, STRING, TIMESTAMP

RECORDS = pa.schema(
    [
        pa.field("key", BINARY),
        pa.field("value", BINARY),
        pa.field("topic", STRING),
        pa.field("partition", INT),
        pa.field("offset", LONG),
        pa.field("timestamp", TIMESTAMP),
        pa.field(
            "headers",
            pa.list_(pa.struct([pa.field("key", STRING), pa.field("value", BINARY)])),
        ),
    ]
)
"""Records of a topic, as Spark's Kafka source has them."""

FIRST_US, LAST_US = 1_262_304_000_000_000, 4_102_444_800_000_000
"""From 2010 to 2100: a time that is not between them is none. A record may have -1."""

NAMES = pa.list_(STRING)
"""The type of names of pods and hosts, the most trustworthy first."""

_PART_BYTES = 32 << 20
_PART_ROWS = 65_536
_BROKER_ID = "broker_id"


def numbered_texts(records: pa.RecordBatch, max_bytes: int) -> pa.Table:
    """The records with a value of at most `max_bytes`, as text, each with its place (`line`).

    Only a line that was unwrapped has `source_line`, `origin`, `names` and `wrapper_time`, as
    `wrappers.py` gives them.
    """
    sizes = pc.fill_null(pc.binary_length(records.column("value")), 0).to_numpy()
    kept = np.flatnonzero((sizes > 0) & (sizes <= max_bytes))
    rows = records if len(kept) == records.num_rows else records.take(pa.array(kept))
    return pa.table(
        {
            "line": pa.array(kept, INT),
            "text": as_text(rows.column("value")),
            "form": pa.nulls(len(kept), STRING),
            "record_us": _epoch_us(rows.column("timestamp")),
            "header_broker": header(rows.column("headers"), _BROKER_ID),
            "key": as_text(rows.column("key")),
            "topic": rows.column("topic"),
            "partition": rows.column("partition"),
            "offset": rows.column("offset"),
            "source_line": pa.nulls(len(kept), INT),
            "origin": pa.nulls(len(kept), STRING),
            "names": pa.nulls(len(kept), NAMES),
            "wrapper_time": pa.nulls(len(kept), STRING),
        }
    )


def in_parts(texts: pa.Table, most_bytes: int = _PART_BYTES) -> Iterator[pa.Table]:
    """The texts in parts of bounded memory; none of them is empty."""
    if not texts.num_rows:
        return
    ends = np.cumsum(pc.binary_length(texts["text"]).to_numpy())
    numbers = np.maximum(ends // most_bytes, np.arange(len(ends)) // _PART_ROWS)
    cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), texts.num_rows]
    for start, stop in pairwise(cuts):
        yield texts.slice(start, stop - start)


def as_text(values: pa.Array) -> pa.Array:
    """Bytes as text. What is no UTF-8 becomes U+FFFD, byte for byte."""
    try:
        return values.cast(STRING)
    except pa.ArrowInvalid:
        decoded = (v if v is None else v.decode("utf-8", "replace") for v in values.to_pylist())
        return pa.array(list(decoded), STRING)


def header(headers: pa.Array, name: str) -> pa.Array:
    """The first header of this name of each record as text; null where there is none."""
    if headers.null_count == len(headers):
        return pa.nulls(len(headers), STRING)
    flat = headers.flatten()
    parents = pc.list_parent_indices(headers).to_numpy()
    named = np.flatnonzero(pc.fill_null(pc.equal(flat.field("key"), name), False))
    at = np.full(len(headers), -1)
    # Backwards, so that the first one is written last.
    at[parents[named][::-1]] = named[::-1]
    return as_text(flat.field("value").take(pa.array(at, mask=at < 0)))


def plausible(times: pa.Array) -> pa.Array:
    """Times from 2010 to 2100, and null in place of others."""
    us = times.cast(LONG)
    is_plausible = pc.and_(pc.greater_equal(us, FIRST_US), pc.less_equal(us, LAST_US))
    return pc.if_else(is_plausible, times, pa.scalar(None, times.type))


def _epoch_us(times: pa.Array) -> pa.Array:
    return plausible(times.cast(TIMESTAMP)).cast(LONG)
