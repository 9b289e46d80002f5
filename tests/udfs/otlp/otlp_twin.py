"""OTLP decoded slowly and obviously: one payload, one message, one point at a time.

The oracle of the decoder: it shares nothing with it but the column names and the limits.
"""

import base64
import json
import math
import re
from datetime import UTC, datetime, timedelta
from functools import cache

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from quotaflow.schemas.metrics import METRICS
from quotaflow.udfs.otlp.columns import SCHEMA

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONG_MAX = 2**63 - 1


def decode(payload, limits):
    """(rows, None, metrics of bad text, broken ones, unnamed ones) of one decompressed payload.

    Or (None, reason, None, None, None).
    """
    try:
        message = MetricsData.FromString(payload)
        metrics = [
            (resource.resource, scope.scope, metric)
            for resource in message.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]
        left_out = broken = 0
    except DecodeError:
        message, metrics, left_out, broken = with_bad_metrics(payload)
        if not metrics and not left_out:
            return UNREAD
    if (
        payload
        and not metrics
        and not left_out
        and (not message.resource_metrics or has_unknown(message))
    ):
        return UNREAD
    if is_over(message, metrics, left_out + broken, limits):
        return None, "points_over_limit", None, None, None
    rows_of = [list(metric_rows(*metric, limits)) for metric in metrics]
    rows = [row for each in rows_of for row in each if row["metric"]]
    unnamed = sum(1 for each in rows_of if each and not each[0]["metric"])
    if (unnamed or broken) and not rows:
        return UNREAD
    return without_duplicates(rows), None, left_out, broken, unnamed


def with_bad_metrics(payload):
    """The outline of a payload, its good metrics, the number of bad text, and of broken ones."""
    try:
        message = OUTLINE.FromString(payload)
    except DecodeError:
        return None, [], 0, 0
    metrics, counts = [], {"text": 0, "broken": 0}
    for resource in message.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                parts = (
                    (Resource, b"".join(resource.resource)),
                    (InstrumentationScope, b"".join(scope.scope)),
                    (Metric, metric),
                )
                refused = [why for why in (fault(*part) for part in parts) if why]
                if refused:
                    counts[refused[0]] += 1
                else:
                    metrics.append([kind.FromString(encoded) for kind, encoded in parts])
    return message, metrics, counts["text"], counts["broken"]


def fault(kind, encoded):
    """What is wrong with an encoded message: its text, or that it is broken."""
    for why, each in ((None, kind), ("text", of_bytes(kind.DESCRIPTOR.full_name))):
        try:
            each.FromString(encoded)
        except DecodeError:
            continue
        return why
    return "broken"


@cache
def of_bytes(name, outline=()):
    """A message with bytes for texts, and for the fields of an outline."""
    pool = DescriptorPool()
    for module in (common_pb2, resource_pb2, metrics_pb2):
        text = module.DESCRIPTOR.serialized_pb
        file = FileDescriptorProto.FromString(text)
        messages = list(file.message_type)
        for message in messages:
            messages += message.nested_type
            for field in message.field:
                if field.type == field.TYPE_STRING:
                    field.type = field.TYPE_BYTES
                if f"{message.name}.{field.name}" in outline:
                    field.type, field.label = field.TYPE_BYTES, field.LABEL_REPEATED
                    field.ClearField("type_name")
        pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(name))


OF_BYTES = of_bytes(MetricsData.DESCRIPTOR.full_name)
PARTS = ("ResourceMetrics.resource", "ScopeMetrics.scope", "ScopeMetrics.metrics")
OUTLINE = of_bytes(MetricsData.DESCRIPTOR.full_name, PARTS)
UNREAD = (None, "not_otlp", None, None, None)


def is_over(message, metrics, left_out, limits):
    scopes = sum(len(resource.scope_metrics) for resource in message.resource_metrics)
    widest = max(len(message.resource_metrics), scopes, len(metrics) + left_out)
    points = 0
    for _, _, metric in metrics:
        if kind := metric.WhichOneof("data"):
            points += sum(map(weight, getattr(metric, kind).data_points))
    return max(widest, points) > limits.points or messages_in(message) > 32 * limits.points


def weight(point):
    values = MessageToDict(point, always_print_fields_with_no_presence=True)
    buckets = [values, values.get("positive", {}), values.get("negative", {})]
    count = sum(len(side.get("bucketCounts", ())) for side in buckets)
    count += len(values.get("explicitBounds", ()))
    return (
        1 + len(values.get("exemplars", ())) + len(values.get("quantileValues", ())) + count // 32
    )


def messages_in(message):
    count = 0
    for field, value in message.ListFields():
        if field.message_type:
            children = value if field.is_repeated else [value]
            count += sum(1 + messages_in(child) for child in children)
    return count


def has_unknown(message):
    levels = [message, *message.resource_metrics]
    levels += [scope for resource in message.resource_metrics for scope in resource.scope_metrics]
    return any(len(UnknownFieldSet(level)) for level in levels)


def without_duplicates(rows):
    seen, kept = set(), []
    for row in rows:
        key = repr(
            [row[name] for name in ("metric", "kind", "attributes", "resource", "scope_name")]
        )
        key += repr([row["scope_version"], row["_sent_unit"], row["_start"], row["_time"]])
        key += repr([row["value"], row["value_int"]])
        if key not in seen:
            seen.add(key)
            kept.append({name: row[name] for name in SCHEMA.names})
    return kept


def metric_rows(resource, scope, metric, limits):
    kind = metric.WhichOneof("data")
    if kind is None:
        return
    data = getattr(metric, kind)
    for point in data.data_points:
        row = dict.fromkeys(SCHEMA.names)
        row |= number(point) if kind in ("gauge", "sum") else distribution(kind, point)
        row["metric"] = cut(metric.name, limits)
        row["_sent_unit"] = cut(metric.unit, limits)
        catalogued = METRICS.get(row["metric"])
        row["unit"] = row["_sent_unit"] or (catalogued.unit if catalogued else None)
        row["in_catalogue"] = catalogued is not None
        row["kind"] = kind
        row["temporality"] = {1: "delta", 2: "cumulative"}.get(
            getattr(data, "aggregation_temporality", 0)
        )
        row["is_monotonic"] = data.is_monotonic if kind == "sum" else None
        row["flags"] = point.flags if point.flags < 2**31 else point.flags - 2**32
        row["_start"], row["_time"] = point.start_time_unix_nano, point.time_unix_nano
        row["start_time"], row["event_time"] = when(row["_start"]), when(row["_time"])
        row["attributes"] = attributes(point.attributes, limits)
        row["resource"] = attributes(resource.attributes, limits)
        row["scope_name"] = cut(scope.name, limits) or None
        row["scope_version"] = cut(scope.version, limits) or None
        if kind != "summary" and point.exemplars:
            row["exemplars"] = [exemplar(e, limits) for e in point.exemplars]
        yield row | normalised(row["attributes"], row["resource"])


def number(point):
    if point.HasField("as_double"):
        return {"value": point.as_double}
    if point.HasField("as_int"):
        return {"value": float(point.as_int), "value_int": point.as_int}
    return {}


def distribution(kind, point):
    row = {"histogram_count": long(point.count)}
    if kind == "summary":
        quantiles = [{"quantile": q.quantile, "value": q.value} for q in point.quantile_values]
        return row | {"histogram_sum": point.sum, "quantiles": quantiles}
    for name in ("sum", "min", "max"):
        row[f"histogram_{name}"] = getattr(point, name) if point.HasField(name) else None
    if kind == "histogram":
        row["histogram_bounds"] = list(point.explicit_bounds)
        row["histogram_bucket_counts"] = [long(count) for count in point.bucket_counts]
        return row
    row["exponential_scale"] = point.scale
    row["exponential_zero_count"] = long(point.zero_count)
    row["exponential_zero_threshold"] = point.zero_threshold
    for side in ("positive", "negative"):
        buckets = getattr(point, side)
        counts = [long(count) for count in buckets.bucket_counts]
        row[f"exponential_{side}"] = {"offset": buckets.offset, "bucket_counts": counts}
    return row


def exemplar(sent, limits):
    value = number(sent)
    return {
        "time": when(sent.time_unix_nano),
        "value": value.get("value"),
        "value_int": value.get("value_int"),
        "span_id": sent.span_id.hex() or None,
        "trace_id": sent.trace_id.hex() or None,
        "filtered_attributes": attributes(sent.filtered_attributes, limits),
    }


def attributes(pairs, limits):
    kept = {}
    for index, pair in enumerate(pairs):
        if index < limits.attributes:
            kept[cut(pair.key, limits)] = text(pair.value, limits)
    if len(pairs) > limits.attributes:
        kept["otel.dropped_attributes_count"] = str(len(pairs) - limits.attributes)
    return sorted(kept.items())


def text(value, limits):
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return cut(value.string_value, limits)
    if kind == "bytes_value":
        return cut(base64.b64encode(value.bytes_value).decode(), limits)
    plain = jsonable(value, limits.nesting)
    if plain is None:
        return None
    return cut(json.dumps(plain, ensure_ascii=False, separators=(",", ":")), limits)


def jsonable(value, depth):
    kind = value.WhichOneof("value")
    if kind is None or kind.endswith("strindex"):
        return None
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    if kind == "array_value":
        return [jsonable(v, depth - 1) for v in value.array_value.values] if depth else "…"
    if kind == "kvlist_value":
        pairs = value.kvlist_value.values
        return {pair.key: jsonable(pair.value, depth - 1) for pair in pairs} if depth else "…"
    return getattr(value, kind)


def normalised(own, resource):
    own, resource = dict(own), dict(resource)
    place = {"topic": own.get("topic") or None, "partition": integer(own.get("partition"))}
    text = own.get("node_id") or own.get("node.id") or ""
    node = integer(text.removeprefix("node-"))
    place["node_id"] = place["node_kind"] = None
    if node is not None and node < 0:
        place["node_kind"] = "bootstrap" if text.startswith("node-") else None
    elif node is not None and node >= 2**30:
        place["node_id"], place["node_kind"] = 2**31 - 1 - node, "coordinator"
    elif node is not None:
        place["node_id"], place["node_kind"] = node, "broker"
    for name in ("group_id", "group_instance_id", "transactional_id", "application_id"):
        place[name] = resource.get(name) or own.get(name) or None
    place["client_rack"] = resource.get("client_rack") or own.get("client_rack") or None
    members = [
        tags.get(key) for tags in (resource, own) for key in ("member_id", "group_member_id")
    ]
    place["member_id"] = next((member for member in members if member), None)
    return place


def integer(shown):
    if not re.fullmatch("-?[0-9]{1,10}", shown or ""):
        return None
    return int(shown) if abs(int(shown)) < 2**31 else None


def cut(shown, limits):
    return shown if len(shown) <= limits.string_chars else shown[: limits.string_chars - 1] + "…"


def when(ns):
    return EPOCH + timedelta(microseconds=ns // 1000) if ns else None


def long(count):
    return min(count, LONG_MAX)


def comparable(row):
    """The row with NaN made equal to itself, and -0.0 different from 0.0."""
    if isinstance(row, dict):
        return {key: comparable(value) for key, value in row.items()}
    if isinstance(row, list | tuple):
        return [comparable(value) for value in row]
    if isinstance(row, float):
        return "NaN" if math.isnan(row) else row.hex()
    return row
