"""Pseudonyms in Arrow batches at ingest: in columns of facts, in bodies, and in payloads.

The key goes to workers with the function, never as text of a query, because plans show that text.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from quotaflow.schemas.table import STRING
from quotaflow.udfs.otlp.bad_text import readable_part
from quotaflow.udfs.otlp.codecs import Limits, UnreadableError, compress, decompress
from quotaflow.udfs.rules.pseudonym import COLUMNS, SCOPE_NAME, Plain, Pseudonyms
from quotaflow.udfs.rules.request_body import hidden_body

Batches = Iterator[pa.RecordBatch]
MapBatches = Callable[[Batches], Batches]
Replacement = Callable[[str, str], str]
"""(key, text) -> the text to keep."""
UNHIDDEN = "cannot_be_hidden"
"""Reason of a readable payload that could not be rewritten with its client hidden."""


def hide_columns(pseudonyms: Pseudonyms) -> MapBatches:
    """For mapInArrow: hides a client in the columns of a fact, and in `body` where there is one."""

    def hide(batches: Batches) -> Batches:
        for batch in batches:
            changed = {
                name: _each(batch, name, partial(pseudonyms.pseudonym, name)) for name in COLUMNS
            }
            changed["connection_id"] = _each(batch, "connection_id", pseudonyms.connection_id)
            if "body" in batch.schema.names:
                changed["body"] = _bodies(batch, pseudonyms)
            yield _with(batch, changed)

    return hide


def hide_payloads(pseudonyms: Pseudonyms, limits: Limits) -> MapBatches:
    """For mapInArrow: rewrites readable payloads with their client hidden.

    Columns are hidden already. Of an unreadable payload only the reason is kept.
    """

    def hide(batches: Batches) -> Batches:
        for batch in batches:
            rows = batch.select(["payload", "compression", "unreadable_reason", *COLUMNS])
            kept = [_payload(row, pseudonyms, limits) for row in rows.to_pylist()]
            payloads, reasons = ([each[i] for each in kept] for i in (0, 1))
            changed = {
                "payload": pa.array(payloads, batch.schema.field("payload").type),
                "unreadable_reason": pa.array(reasons, STRING),
                # It may cite the payload.
                "unreadable_detail": pa.nulls(batch.num_rows, STRING),
            }
            yield _with(batch, changed)

    return hide


def _each(batch: pa.RecordBatch, name: str, replaced: Callable[[str], str]) -> pa.Array:
    """A column with every text replaced, each distinct one once."""
    column = batch.column(name).dictionary_encode()
    texts = [replaced(text) for text in column.dictionary.to_pylist()]
    return pa.array(texts, STRING).take(column.indices)


def _bodies(batch: pa.RecordBatch, pseudonyms: Pseudonyms) -> pa.Array:
    rows = batch.select(["body", *COLUMNS]).to_pylist()
    bodies = (row["body"] and hidden_body(row["body"], pseudonyms, _plain(row)) for row in rows)
    return pa.array(list(bodies), STRING)


def _plain(row: Mapping[str, Any]) -> Plain:
    return {column: row[column] for column in COLUMNS}


def _with(batch: pa.RecordBatch, changed: Mapping[str, pa.Array]) -> pa.RecordBatch:
    columns = [changed.get(name, batch.column(name)) for name in batch.schema.names]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _payload(
    row: Mapping[str, Any], pseudonyms: Pseudonyms, limits: Limits
) -> tuple[bytes | None, str | None]:
    """The payload to keep, and why it is unreadable."""
    if row["unreadable_reason"] is not None:
        return None, row["unreadable_reason"]
    if not row["payload"]:
        return row["payload"], None
    try:
        data = _readable(decompress(row["payload"], row["compression"], limits), limits)
        # Fields that this descriptor does not know could hold any text.
        data.DiscardUnknownFields()
        # A Java client repeats its resource for every metric.
        replaced = cache(partial(_text, pseudonyms, _plain(row)))
        for attributes in _attributes(data):
            _hide_all(attributes, replaced)
        _hide_scopes(data, replaced)
        payload = compress(data.SerializeToString(), row["compression"])
        decompress(payload, row["compression"], limits)
    except (DecodeError, UnreadableError):
        return None, UNHIDDEN
    return payload, None


def _readable(payload: bytes, limits: Limits) -> MetricsData:
    """The payload without metrics that protobuf refuses: their bytes could name the client."""
    try:
        return MetricsData.FromString(payload)
    except DecodeError:
        return MetricsData.FromString(readable_part(payload, limits)[0])


def _attributes(data: MetricsData) -> Iterator[Iterable[KeyValue]]:
    """Every list of attributes in a payload."""
    for of_resource in data.resource_metrics:
        yield of_resource.resource.attributes
        for of_scope in of_resource.scope_metrics:
            yield of_scope.scope.attributes
            for metric in of_scope.metrics:
                yield metric.metadata
                kind = metric.WhichOneof("data")
                for point in getattr(metric, kind).data_points if kind else ():
                    yield point.attributes
                    for exemplar in getattr(point, "exemplars", ()):
                        yield exemplar.filtered_attributes


def _hide_scopes(data: MetricsData, replaced: Replacement) -> None:
    for of_resource in data.resource_metrics:
        for of_scope in of_resource.scope_metrics:
            name = of_scope.scope.name
            if (hidden := replaced(SCOPE_NAME, name)) != name:
                of_scope.scope.name = hidden


def _hide_all(attributes: Iterable[KeyValue], replaced: Replacement) -> None:
    for attribute in attributes:
        _hide(attribute.key, attribute.value, replaced)


def _hide(key: str, value: AnyValue, replaced: Replacement) -> None:
    kind = value.WhichOneof("value")
    if kind == "string_value":
        text = value.string_value
        if (hidden := replaced(key, text)) != text:
            value.string_value = hidden
    elif kind == "array_value":
        for each in value.array_value.values:
            _hide(key, each, replaced)
    elif kind == "kvlist_value":
        _hide_all(value.kvlist_value.values, replaced)


def _text(pseudonyms: Pseudonyms, hidden: Plain, key: str, text: str) -> str:
    """The text with its own client hidden: it names that client if it has the same pseudonym."""
    for column in pseudonyms.hidden:
        if (pseudonym := pseudonyms.pseudonym(column, text)) == hidden[column]:
            return pseudonym
    return pseudonyms.tag(key, text)
