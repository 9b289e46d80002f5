"""Rows of `quarantine`: records and payloads that cannot be read, with reason and first bytes."""

from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.schemas.table import BINARY, LONG, STRING, TIMESTAMP
from quotaflow.schemas.tables.declared import QUARANTINE
from quotaflow.udfs.otlp import bad_text
from quotaflow.udfs.request_log.columns import (
    LINE_TOO_LONG,
    NOT_JSON,
    READER_FAILED,
    WRAPPED_LINE,
)
from quotaflow.udfs.request_log.records import as_text

HEAD_BYTES = 4_096
_DETAIL_CHARS = 500
# Kafka logs these bodies in full, and they hold credentials.
_TELLTALE = "SASL_AUTHENTICATE|DELEGATION_TOKEN|SCRAM_CREDENTIALS|ENVELOPE|saltedPassword|hmac"
# A line that begins with a whole header: then it is known whose body follows.
_WHOLE_HEADER = (
    r'^(?:[^{}"]{0,200}Completed request:)?\s*'
    r'(?:\{\s*(?:"(?:ts|broker)"\s*:[^{}\[\]]{0,100},\s*){0,2}"r"\s*:\s*)?'
    r'\{\s*(?:"isForwarded"\s*:\s*(?:true|false)\s*,\s*)?"requestHeader"\s*:\s*\{'
    r'[^{}]*"requestApiKeyName"\s*:\s*"[A-Z_]+"[^{}]*\}'
)
# These were not read as JSON, or wrap what was not: they may begin anywhere in a line.
_TORN = pa.array([NOT_JSON, LINE_TOO_LONG, READER_FAILED, WRAPPED_LINE])


def of_lines(
    lines: pa.Table, values: pa.Array, places: pa.Array, now: datetime, *, with_heads: bool
) -> pa.Table:
    """The unreadable among LINES, without a cluster; `places` has the value of each line's record.

    A torn line may begin anywhere in a credential. So the head of a text that is no JSON is kept
    only if it begins with a whole header, of an API without credentials. The head of a record with
    several lines is not kept: it is of other lines, too.
    """
    bad = pc.indices_nonzero(pc.is_valid(lines["reason"]))
    rows, at = lines.take(bad), places.take(bad)
    is_of_several = pc.is_valid(rows["source_line"].combine_chunks())
    value = values.take(pc.if_else(is_of_several, None, at))
    text = as_text(value)
    is_secret = pc.or_(
        pc.match_substring_regex(text, _TELLTALE),
        pc.and_(
            pc.is_in(rows["reason"], _TORN),
            pc.invert(pc.match_substring_regex(text, _WHOLE_HEADER)),
        ),
    )
    heads = pc.if_else(is_secret, None, pc.binary_slice(value, 0, HEAD_BYTES))
    kept = {
        "target": pa.repeat(pa.scalar("requests"), len(bad)),
        "detail": pc.coalesce(rows["detail"], rows["api"]),
        "size_bytes": pc.binary_length(values).take(at),
        "head": heads,
    }
    if not with_heads:
        kept |= {"detail": pa.nulls(len(bad), STRING), "head": pa.nulls(len(bad), BINARY)}
    return _table(rows, kept, now)


def of_pushes(pushes: pa.Table, now: datetime) -> pa.Table:
    """Opened pushes that cannot be read, or metrics of them; they stay in `telemetry_pushes`."""
    rows = pushes.filter(pc.is_valid(reasons_of(pushes)))
    left_out = pa.array([each and each[1] for each in _left_out(rows)], STRING)
    kept = {
        "cluster_id": rows["cluster_id"],
        "reason": reasons_of(rows),
        "target": pa.repeat(pa.scalar("client_metrics"), rows.num_rows),
        "detail": pc.if_else(
            pc.is_valid(rows["unreadable_reason"]), rows["unreadable_detail"], left_out
        ),
        "size_bytes": rows["wire_bytes"],  # also of a payload that was rejected
        "head": pc.binary_slice(rows["payload"], 0, HEAD_BYTES),
    }
    return _table(rows, kept, now)


def reasons_of(pushes: pa.Table) -> pa.ChunkedArray:
    """Why each of these opened pushes is in quarantine; null if all of its payload can be read."""
    left_out = pa.array([each and each[0] for each in _left_out(pushes)], STRING)
    return pc.coalesce(pushes["unreadable_reason"], pa.chunked_array([left_out]))


def _left_out(pushes: pa.Table) -> list[tuple[str, str] | None]:
    """Of each push the reason and the detail of the metrics that are left out, if any are."""
    counts = (pushes[name].to_pylist() for name in bad_text.COUNTS)
    return list(map(bad_text.metrics_left_out, *counts))


def _table(rows: pa.Table, kept: dict[str, pa.Array], now: datetime) -> pa.Table:
    given = {name: rows[name] for name in rows.column_names} | kept
    given["event_time"] = pc.fill_null(rows["record_time"], pa.scalar(now, TIMESTAMP))
    given["detail"] = pc.utf8_slice_codeunits(given["detail"], 0, _DETAIL_CHARS)
    given.setdefault("cluster_id", pa.nulls(rows.num_rows, STRING))
    given["size_bytes"] = given["size_bytes"].cast(LONG)
    arrays = [given[f.name].cast(f.type) for f in QUARANTINE.arrow]
    return pa.Table.from_arrays(arrays, schema=QUARANTINE.arrow)
