"""Pushes of telemetry (KIP-714) by any of the three routes, as rows of `telemetry_pushes`."""

import binascii
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.schemas.events import PUSH
from quotaflow.schemas.table import BINARY, BOOLEAN, INT, LONG, STRING, TIMESTAMP
from quotaflow.schemas.tables.declared import TELEMETRY_PUSHES
from quotaflow.udfs.otlp import bad_text, decode
from quotaflow.udfs.otlp.codecs import COMPRESSION_NAMES, Limits
from quotaflow.udfs.otlp.context import KEYS
from quotaflow.udfs.pseudonyms import hide_columns, hide_payloads
from quotaflow.udfs.request_log.records import header, plausible
from quotaflow.udfs.rules.pseudonym import Pseudonyms

_REJECTED_REASON, _REJECTED_DETAIL = "rejected_reason", "rejected_detail"
UNOPENED = pa.schema(
    [
        *(f for f in TELEMETRY_PUSHES.arrow if f.name not in decode.STATUS.names),
        pa.field(_REJECTED_REASON, STRING),
        pa.field(_REJECTED_DETAIL, STRING),
    ]
)
"""Pushes before their payloads are opened. One that is rejected already has no payload."""
OPENED = pa.schema([*TELEMETRY_PUSHES.arrow, decode.STATUS.field("unreadable_detail")])
"""Rows of `telemetry_pushes`, and a detail of why a payload cannot be read."""

_DETAIL_CHARS = 200
_NUMBERS = {name: KEYS.get(name, name) for name in ("broker_id", "client_port", "push_interval_ms")}
_TEXTS = {name: key for name, key in KEYS.items() if name not in _NUMBERS}
_TEXTS |= {name: name for name in ("security_protocol", "connection_id")}
"""Columns of `telemetry_pushes`, each with its header."""


def from_lines(requests: pa.Table, telemetry: pa.Table) -> pa.Table:
    """The pushes among rows of `requests` as UNOPENED, also those that a broker refused.

    `telemetry` is `request_log.columns.TELEMETRY` of these rows, where `line` is the row.
    """
    fields = telemetry.filter(pc.equal(telemetry["api_name"], PUSH))
    rows = requests.take(fields["line"])
    texts = fields["metrics"].to_pylist()
    payloads = [_decoded(text) for text in texts]
    is_bad = [
        text is not None and payload is None for text, payload in zip(texts, payloads, strict=True)
    ]
    given = {
        "client_instance_id": fields["request_instance_id"],
        "accepted": pc.equal(pc.fill_null(rows["error_code"], -1), 0),
        "terminating": fields["terminating"],
        "compression": pa.array(
            [compression(i) for i in fields["compression_type"].to_pylist()], STRING
        ),
        "subscription_id": fields["request_subscription_id"],
        "push_interval_ms": pa.nulls(fields.num_rows, INT),
        "payload": pa.array(payloads, BINARY),
        "wire_bytes": pa.array([p if p is None else len(p) for p in payloads], LONG),
        "route": pa.repeat(pa.scalar("request_log", STRING), fields.num_rows),
        _REJECTED_REASON: pa.array(["bad_base64" if bad else None for bad in is_bad], STRING),
        _REJECTED_DETAIL: pa.array(
            [
                text[:_DETAIL_CHARS] if bad else None
                for text, bad in zip(texts, is_bad, strict=True)
            ],
            STRING,
        ),
    }
    return _table({name: rows[name] for name in rows.column_names} | given, fields.num_rows)


def from_receiver(records: pa.RecordBatch, max_bytes: int, now: datetime) -> pa.Table:
    """Records of broker/TelemetryReceiver as UNOPENED: payload decompressed, context in headers."""
    headers = records.column("headers")
    texts = {name: _named(header(headers, key)) for name, key in _TEXTS.items()}
    numbers = {name: _integers(header(headers, key)) for name, key in _NUMBERS.items()}
    flag = header(headers, "terminating")
    is_known = pc.is_in(flag, pa.array(["true", "false"]))
    terminating = {"terminating": pc.if_else(is_known, pc.equal(flag, "true"), None).cast(BOOLEAN)}
    return _from_records(records, "receiver", max_bytes, now, texts | numbers | terminating)


def from_collector(records: pa.RecordBatch, max_bytes: int, now: datetime) -> pa.Table:
    """Records of a Collector's Kafka exporter (otlp_proto) as UNOPENED, each with a batch.

    The client of a point is named in its resource (udfs/otlp/context), not in the record.
    """
    return _from_records(records, "otlp", max_bytes, now, {})


def _from_records(
    records: pa.RecordBatch,
    route: str,
    max_bytes: int,
    now: datetime,
    context: Mapping[str, pa.Array],
) -> pa.Table:
    """Kafka records whose value is a decompressed payload, from any writer."""
    value, count = records.column("value"), records.num_rows
    sizes = pc.binary_length(value).cast(LONG)
    fits = pc.fill_null(pc.less_equal(sizes, max_bytes), True)
    record_time = plausible(records.column("timestamp").cast(TIMESTAMP))
    given = {
        "event_time": pc.fill_null(record_time, pa.scalar(now, TIMESTAMP)),
        "accepted": pa.repeat(pa.scalar(True), count),
        "compression": pa.repeat(pa.scalar("none"), count),
        "payload": pc.if_else(fits, value, None),
        "wire_bytes": sizes,
        "route": pa.repeat(pa.scalar(route), count),
        "source_topic": records.column("topic"),
        "source_partition": records.column("partition"),
        "source_offset": records.column("offset"),
        "record_time": record_time,
        _REJECTED_REASON: pc.if_else(fits, None, "payload_too_large"),
        _REJECTED_DETAIL: pc.if_else(fits, None, f"at most {max_bytes} bytes"),
    }
    return _table({**context, **given}, count)


def opened(unopened: pa.Table, limits: Limits, pseudonyms: Pseudonyms | None) -> pa.Table:
    """Pushes with size and hash of each payload, or why it is unreadable, as OPENED.

    With pseudonyms no payload names its client. Columns must have pseudonyms already.
    """
    status = decode.check(_whole(unopened["payload"]), _whole(unopened["compression"]), limits)
    # The decoder takes a rejected payload, which is null, for an empty one.
    rejected = unopened[_REJECTED_REASON]
    is_rejected = pc.is_valid(rejected)
    columns = {name: unopened[name] for name in unopened.column_names}
    columns |= {
        "unreadable_reason": pc.coalesce(rejected, status.column("unreadable_reason")),
        "unreadable_detail": pc.coalesce(
            unopened[_REJECTED_DETAIL], status.column("unreadable_detail")
        ),
        "decoded_bytes": pc.if_else(is_rejected, None, status.column("decoded_bytes")),
        "payload_sha256": pc.if_else(is_rejected, None, status.column("payload_sha256")),
    }
    columns |= {
        name: pc.if_else(is_rejected, None, status.column(name)) for name in bad_text.COUNTS
    }
    rows = pa.Table.from_arrays([columns[f.name].cast(f.type) for f in OPENED], schema=OPENED)
    if pseudonyms is None or not rows.num_rows:
        return rows
    hidden = hide_payloads(pseudonyms, limits)(iter(rows.combine_chunks().to_batches()))
    return pa.Table.from_batches(hidden, OPENED)


def with_hidden_columns(rows: pa.Table, pseudonyms: Pseudonyms | None) -> pa.Table:
    """Rows with pseudonyms in columns that name a client, and in bodies; the same without a key."""
    if pseudonyms is None or not rows.num_rows:
        return rows
    hidden = hide_columns(pseudonyms)(iter(rows.combine_chunks().to_batches()))
    return pa.Table.from_batches(hidden, rows.schema)


def compression(number: int | None) -> str | None:
    """Kafka's compression id as a name; an id that Kafka does not define shows as `id N`."""
    if number is None:
        return None
    return COMPRESSION_NAMES[number] if 0 <= number < len(COMPRESSION_NAMES) else f"id {number}"


def _decoded(text: str | None) -> bytes | None:
    # Python takes text with too much padding.
    if text is None or len(text) % 4:
        return None
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return None


def _named(texts: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(texts, ""), None, texts)


def _integers(texts: pa.Array) -> pa.Array:
    """Texts of at most nine digits as numbers, others as null."""
    is_number = pc.match_substring_regex(texts, "^-?[0-9]{1,9}$")
    return pc.if_else(is_number, texts, None).cast(INT)


def _table(given: Mapping[str, Any], rows: int) -> pa.Table:
    arrays = [
        given[f.name].cast(f.type) if f.name in given else pa.nulls(rows, f.type) for f in UNOPENED
    ]
    return pa.Table.from_arrays(arrays, schema=UNOPENED)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()
