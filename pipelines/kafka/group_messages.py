"""Requests about groups that kafka-python has no classes for, made from Kafka's own JSON schemas.

kafka-python makes a class of a message from its schema, and finds the response of a request by the
API key. Fields have the names of the schema in snake case.
"""

import types
from typing import Any

from kafka.protocol.api_message import ApiMessage

_SCHEMAS = "quotaflow.pipelines.kafka.messages"


def _made(name: str) -> Any:
    return types.new_class(name, (ApiMessage,), {"load_json": _SCHEMAS})


ConsumerGroupDescribeRequest = _made("ConsumerGroupDescribeRequest")
"""Members of groups of the consumer protocol (KIP-848)."""
ConsumerGroupDescribeResponse = _made("ConsumerGroupDescribeResponse")

ShareGroupDescribeRequest = _made("ShareGroupDescribeRequest")
"""Members of share groups (KIP-932)."""
ShareGroupDescribeResponse = _made("ShareGroupDescribeResponse")

StreamsGroupDescribeRequest = _made("StreamsGroupDescribeRequest")
"""Members and topology of streams groups (KIP-1071)."""
StreamsGroupDescribeResponse = _made("StreamsGroupDescribeResponse")

DescribeShareGroupOffsetsRequest = _made("DescribeShareGroupOffsetsRequest")
"""Start offsets of share groups (KIP-932), and from version 1 on their lag (KIP-1226)."""
DescribeShareGroupOffsetsResponse = _made("DescribeShareGroupOffsetsResponse")
