"""OpenTelemetry's descriptors of OTLP, reduced to what is read column by column.

ptars spends its time on the fields that a descriptor names. Here a payload is only split into the
bytes of its resources, scopes, and metrics: a Java client repeats one resource for every metric, so
each distinct one is decoded once. Fields that protobuf merges when they occur twice are declared
repeated, so that a second occurrence is seen, not lost.
"""

from functools import cache
from typing import Any

import ptars
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto
from google.protobuf.message import Message
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.resource.v1 import resource_pb2

_PAYLOAD = {
    "MetricsData": ("resource_metrics",),
    "ResourceMetrics": ("resource", "scope_metrics", "schema_url"),
    "ScopeMetrics": ("scope", "metrics", "schema_url"),
}
_BATCH = "Batch"


@cache
def payload_class() -> type[Message]:
    """MetricsData down to its resources, scopes, and metrics, these and texts as bytes.

    upb parses it strictly and fast, so it decides which payloads go to ptars: ptars 0.0.25 panics
    on a length near 2^64.
    """
    return message_factory.GetMessageClass(_pruned(_PAYLOAD, "MetricsData"))


@cache
def batch_class() -> type[Message]:
    """A message of many payloads: `repeated MetricsData payloads = 1`."""
    file: Any = payload_class().DESCRIPTOR.file
    return message_factory.GetMessageClass(file.message_types_by_name[_BATCH])


@cache
def payload_handler() -> Any:
    """A message of many payloads as Arrow columns, by ptars."""
    descriptor = batch_class().DESCRIPTOR
    return ptars.HandlerPool([descriptor.file]).get_for_message(descriptor)


@cache
def bytes_class(name: str) -> type[Message]:
    """A message of OTLP metrics with bytes for every string: it reads text that is no UTF-8."""
    return message_factory.GetMessageClass(_bytes_pool().FindMessageTypeByName(name))


@cache
def _bytes_pool() -> Any:
    pool = descriptor_pool.DescriptorPool()
    for source in (common_pb2, resource_pb2, metrics_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        source.DESCRIPTOR.CopyToProto(file)
        for message in file.message_type:
            _read_bytes(message)
        pool.Add(file)
    return pool


def _read_bytes(message: descriptor_pb2.DescriptorProto) -> None:
    for field in message.field:
        if field.type == FieldDescriptorProto.TYPE_STRING:
            field.type = FieldDescriptorProto.TYPE_BYTES
    for nested in message.nested_type:
        _read_bytes(nested)


def _pruned(kept: dict[str, tuple[str, ...]], root: str) -> Any:
    """The descriptor of `root` with only the `kept` fields of the `kept` messages."""
    file = descriptor_pb2.FileDescriptorProto()
    metrics_pb2.DESCRIPTOR.CopyToProto(file)
    messages = [message for message in file.message_type if message.name in kept]
    for message in messages:
        _prune(message, kept)
    payloads = FieldDescriptorProto(
        name="payloads",
        number=1,
        label=FieldDescriptorProto.LABEL_REPEATED,
        type=FieldDescriptorProto.TYPE_MESSAGE,
        type_name=f".{file.package}.{root}",
    )
    messages.append(descriptor_pb2.DescriptorProto(name=_BATCH, field=[payloads]))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(
        descriptor_pb2.FileDescriptorProto(
            name=f"{root}.proto", package=file.package, syntax=file.syntax, message_type=messages
        )
    )
    return pool.FindMessageTypeByName(f"{file.package}.{root}")


def _prune(message: descriptor_pb2.DescriptorProto, kept: dict[str, tuple[str, ...]]) -> None:
    fields = [field for field in message.field if field.name in kept[message.name]]
    for field in fields:
        field.ClearField("oneof_index")
        if field.type == FieldDescriptorProto.TYPE_STRING:
            field.type = FieldDescriptorProto.TYPE_BYTES
        is_message = field.type == FieldDescriptorProto.TYPE_MESSAGE
        if is_message and field.type_name.rpartition(".")[2] not in kept:
            field.ClearField("type_name")
            field.type = FieldDescriptorProto.TYPE_BYTES
            field.label = FieldDescriptorProto.LABEL_REPEATED
    for part in ("field", "oneof_decl", "nested_type", "reserved_range", "reserved_name"):
        message.ClearField(part)
    message.field.extend(fields)
