"""Bytes of the consumer protocol over Arrow batches, for rules of groups."""

from typing import Any

import pyarrow as pa

from quotaflow.schemas.table import BOOLEAN, INT, STRING
from quotaflow.udfs.engine.rule import Batches
from quotaflow.udfs.rules import consumer_protocol

SQL = """
    SELECT DISTINCT api, protocol_bytes FROM group_requests
    WHERE protocol_bytes IS NOT NULL
    ORDER BY api, protocol_bytes
"""
ASSIGNED = pa.list_(
    pa.struct([pa.field("topic", STRING), pa.field("topic_id", STRING), pa.field("partition", INT)])
)
PROTOCOLS = pa.schema(
    [
        pa.field("api", STRING),
        pa.field("protocol_bytes", STRING),
        pa.field("is_readable", BOOLEAN),
        pa.field("protocol_topics", pa.list_(STRING)),
        pa.field("protocol_rack", STRING),
        pa.field("protocol_partitions", ASSIGNED),
    ]
)
"""A row per text: the topics of a subscription (JOIN_GROUP), or the partitions of an assignment."""


def read(batches: Batches) -> Batches:
    """A function of a Walk: rows of SQL in, PROTOCOLS out."""
    for batch in batches:
        rows = [_row(row["api"], row["protocol_bytes"]) for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, schema=PROTOCOLS)


def _row(api: str, text: str) -> dict[str, Any]:
    row: dict[str, Any] = {"api": api, "protocol_bytes": text, "is_readable": True}
    try:
        if api == "JOIN_GROUP":
            subscribed = consumer_protocol.subscription(text)
            return row | {
                "protocol_topics": subscribed.topics,
                "protocol_rack": subscribed.rack,
            }
        partitions = consumer_protocol.assignment(text)
    except ValueError:
        return row | {"is_readable": False}
    named = [{"topic": topic, "topic_id": None, "partition": part} for topic, part in partitions]
    return row | {"protocol_partitions": named}
