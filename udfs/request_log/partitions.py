"""The `partitions` column of requests: both sides of PRODUCE and FETCH, partition by partition.

In request order, then the partitions that only the response names: with a fetch session (KIP-227) a
response may have partitions that its request did not list.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.schemas.tables.declared import REQUESTS

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_FORGOTTEN, _PARTITION = REQUESTS.element("forgotten"), REQUESTS.element("partitions")
_NO_PARTITION = -(1 << 31) - 1
_PARTITION_BITS = 33


def merged(requested: pa.Table, answered: pa.Table, has_list: Flags, places: Ints) -> pa.ListArray:
    """One list per line: `has_list` says which lines have one, even if it is empty.

    The tables have one row per partition, with the `line` it is in. `places` has the row of each
    line in the result. A partition that comes twice in a response belongs to the first request.
    """
    lines = [places[_ints(side, "line")] for side in (requested, answered)]
    matches, unmatched = _matched(*_keys(requested, answered, lines))
    line = np.concatenate([lines[0], lines[1][unmatched]])
    # Stable: partitions of the request stay before those that only the response names.
    order = np.argsort(line, kind="stable")
    of_request = np.concatenate([np.arange(len(lines[0])), np.full(len(unmatched), -1)])[order]
    of_response = np.concatenate([matches, unmatched])[order]
    values = _structs(requested, answered, of_request, of_response)
    return _lists(values, line, has_list)


def forgotten(rows: pa.Table, has_list: Flags, places: Ints) -> pa.ListArray:
    """One list per line of the partitions that a FETCH takes out of its session."""
    line = places[_ints(rows, "line")]
    order = np.argsort(line, kind="stable")
    fields = [rows[f.name].take(pa.array(order)).combine_chunks().cast(f.type) for f in _FORGOTTEN]
    return _lists(pa.StructArray.from_arrays(fields, fields=list(_FORGOTTEN)), line, has_list)


def _lists(values: pa.StructArray, line: Ints, has_list: Flags) -> pa.ListArray:
    counts = np.bincount(line, minlength=len(has_list))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=pa.array(~has_list))


def _keys(requested: pa.Table, answered: pa.Table, lines: list[Ints]) -> tuple[Ints, Ints]:
    """A number for each partition of either side: equal where line, topic and partition are."""
    topics = pa.chunked_array(
        [
            chunk
            for side in (requested, answered)
            for chunk in pc.coalesce(side["topic_id"], side["topic"]).chunks
        ],
        pa.string(),
    ).combine_chunks()
    codes = pc.fill_null(topics.dictionary_encode().indices.cast(pa.int64()), -1).to_numpy() + 1
    line = np.concatenate(lines)
    _, topic_of_line = np.unique(line * (codes.max(initial=0) + 1) + codes, return_inverse=True)
    partition = np.concatenate(
        [_ints(side, "partition", _NO_PARTITION) for side in (requested, answered)]
    )
    keys = (topic_of_line << _PARTITION_BITS) + (partition - _NO_PARTITION)
    return keys[: len(lines[0])], keys[len(lines[0]) :]


def _matched(requested: Ints, answered: Ints) -> tuple[Ints, Ints]:
    """For each requested partition its first answer or -1, and the answers that none requested."""
    if not len(answered):
        return np.full(len(requested), -1), np.empty(0, np.int64)
    order = np.argsort(answered, kind="stable")
    in_order = answered[order]
    at = np.minimum(np.searchsorted(in_order, requested), len(order) - 1)
    matches = np.where(in_order[at] == requested, order[at], -1)
    return matches, np.flatnonzero(~np.isin(answered, requested))


def _structs(
    requested: pa.Table, answered: pa.Table, of_request: Ints, of_response: Ints
) -> pa.StructArray:
    request, response = _taker(requested, of_request), _taker(answered, of_response)
    columns = {
        "topic": pc.coalesce(request("topic"), response("topic")),
        "topic_id": pc.coalesce(request("topic_id"), response("topic_id")),
        "partition": pc.coalesce(request("partition"), response("partition")),
        "in_request": pa.array(of_request >= 0),
        "in_response": pa.array(of_response >= 0),
        "fetch_offset": request("fetch_offset"),
        "partition_max_bytes": request("partition_max_bytes"),
        "high_watermark": _offsets(response("high_watermark")),
        "last_stable_offset": _offsets(response("last_stable_offset")),
        "log_start_offset": _offsets(response("log_start_offset")),
        "follower_log_start_offset": _offsets(request("requested_log_start")),
        "preferred_read_replica": response("preferred_read_replica"),
        "bytes": pc.coalesce(request("requested_bytes"), response("answered_bytes")),
        "error_code": response("error_code"),
    }
    arrays = [columns[field.name].cast(field.type) for field in _PARTITION]
    return pa.StructArray.from_arrays(arrays, fields=list(_PARTITION))


def _offsets(values: pa.Array) -> pa.Array:
    """Offsets with null for -1: a consumer has no log start, and an error no high watermark."""
    return pc.if_else(pc.equal(values, -1), None, values)


def _taker(side: pa.Table, rows: Ints):  # type: ignore[no-untyped-def]
    """A function that returns a column's values at these rows; null at -1."""
    indices = pa.array(rows, mask=rows < 0)

    def take(name: str) -> pa.Array:
        return side[name].combine_chunks().take(indices)

    return take


def _ints(rows: pa.Table, name: str, null: int = 0) -> Ints:
    values: Ints = pc.fill_null(rows[name].cast(pa.int64()), null).to_numpy()
    return values
