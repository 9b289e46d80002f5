"""Points of client_metrics to requests of OTLP over HTTP, in tasks: bounded, and compressed.

Who pushed is in the resource, under names of ours. A client may name its own attributes as it
likes, so one that a receiver could take for ours gets a prefix: Prometheus makes one label of
`kafka.principal` and of the same with `_`, and lets that of a point win over that of its resource.
"""

import gzip
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1 import metrics_pb2

from quotaflow.schemas.table import BINARY, LONG, TIMESTAMP, sql_columns
from quotaflow.udfs.otlp.decode import Batches
from quotaflow.udfs.otlp.exact import NS_PER_US

REQUEST = pa.schema([pa.field("body", BINARY), pa.field("points", LONG)])
"""A request, compressed with gzip, and the points in it."""
REQUEST_SQL = sql_columns(REQUEST)
IDENTITY = {
    "kafka.cluster.id": "cluster_id",
    "kafka.broker.id": "broker_id",
    "kafka.listener": "listener",
    "kafka.principal": "principal",
    "kafka.client.id": "client_id",
    "kafka.client.instance.id": "client_instance_id",
    "kafka.client.software.name": "client_software_name",
    "kafka.client.software.version": "client_software_version",
    "kafka.client.address": "client_address",
    "service.instance.id": "client_instance_id",
}
"""Attribute of the resource -> column of client_metrics. Null values are left out."""
SERVICE = "kafka-client"
"""The value of service.name. It is one for all: Prometheus makes the label job of it."""
_OF_PUSH = ("payload_sha256", "resource", "scope_name", "scope_version")
_OF_METRIC = ("metric", "kind", "unit", "temporality", "is_monotonic")
_NUMBERS = (
    *("event_time", "start_time", "value", "value_int", "flags", "attributes"),
    *("histogram_count", "histogram_sum", "histogram_min", "histogram_max"),
    *("histogram_bounds", "histogram_bucket_counts", "exponential_scale", "exponential_zero_count"),
    *("exponential_zero_threshold", "exponential_positive", "exponential_negative", "quantiles"),
)
READ = tuple(dict.fromkeys((*IDENTITY.values(), *_OF_PUSH, *_OF_METRIC, *_NUMBERS)))
"""The columns of client_metrics that requests need."""
ORDER = ("client_instance_id", "event_time", "payload_sha256")
"""The order of rows: receivers refuse or drop a point that is older than the last of its series."""

_MAX_POINTS, _MAX_BYTES = 5_000, 1 << 20
"""Of a request before compression, about: a point that is larger is alone in its own."""
_ROWS_AT_ONCE = 256
_UNSIGNED = 2**32 - 1
_TIMES = ("event_time", "start_time")
_OURS = ("kafka", "service", "job", "instance")
_PREFIX = "client."
_TEMPORALITIES = {
    None: metrics_pb2.AGGREGATION_TEMPORALITY_UNSPECIFIED,
    "delta": metrics_pb2.AGGREGATION_TEMPORALITY_DELTA,
    "cumulative": metrics_pb2.AGGREGATION_TEMPORALITY_CUMULATIVE,
}


def encode(batches: Batches) -> Batches:
    """For mapInArrow: rows with the columns READ, sorted by ORDER, to rows of REQUEST."""
    request = _Request()
    for batch in batches:
        for row in _rows(batch):
            request.add(row)
            if request.is_full:
                yield request.taken()
    if request.points:
        yield request.taken()


def _rows(batch: pa.RecordBatch) -> Iterator[Mapping[str, Any]]:
    """Rows with times in us; a few at once, because rows of Python take much more memory."""
    for name in _TIMES:
        place = batch.schema.get_field_index(name)
        batch = batch.set_column(place, name, batch.column(place).cast(TIMESTAMP).view(LONG))
    for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
        yield from batch.slice(start, _ROWS_AT_ONCE).to_pylist()


class _Request:
    """A request that grows until it is taken."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.points = self.size = 0
        self.message = ExportMetricsServiceRequest()
        self.push: list[Any] | None = None
        self.scope: Any = None
        self.metrics: dict[tuple[Any, ...], Any] = {}

    @property
    def is_full(self) -> bool:
        return self.points >= _MAX_POINTS or self.size >= _MAX_BYTES

    def taken(self) -> pa.RecordBatch:
        """The request so far as a row of REQUEST; the next point begins a new one."""
        body = gzip.compress(self.message.SerializeToString(), compresslevel=1, mtime=0)
        row = pa.RecordBatch.from_pylist([{"body": body, "points": self.points}], schema=REQUEST)
        self._clear()
        return row

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a point, below the resource and the metric that it shares with those before it."""
        push = [row["client_instance_id"], *(row[name] for name in _OF_PUSH)]
        if push != self.push:
            self._begin(row)
            self.push = push
        header = tuple(row[name] for name in _OF_METRIC)
        metric = self.metrics.get(header)
        if metric is None:
            metric = self.metrics[header] = self.scope.metrics.add(name=row["metric"])
            metric.unit = row["unit"] or ""
            self.size += metric.ByteSize()
        self.size += _add_point(metric, row)
        self.points += 1

    def _begin(self, row: Mapping[str, Any]) -> None:
        resource = self.message.resource_metrics.add()
        names = {key: row[column] for key, column in IDENTITY.items() if row[column] is not None}
        ours = {"service.name": SERVICE, **names}.items()
        _fill(resource.resource.attributes, ((key, str(value)) for key, value in ours))
        _fill(resource.resource.attributes, _own(row["resource"]))
        self.scope = resource.scope_metrics.add()
        self.scope.scope.name = row["scope_name"] or ""
        self.scope.scope.version = row["scope_version"] or ""
        self.size += resource.ByteSize()
        self.metrics = {}


def _own(tags: Iterable[tuple[str, str | None]] | None) -> Iterator[tuple[str, str | None]]:
    """Attributes that a client chose, under names that nobody takes for ours."""
    return ((_own_name(key), text) for key, text in tags or ())


@lru_cache(1_024)
def _own_name(key: str) -> str:
    is_ours = key.startswith("_") or re.sub("[^a-z0-9]", "", key.casefold()).startswith(_OURS)
    return f"{_PREFIX}{key}" if is_ours else key


def _fill(attributes: Any, tags: Iterable[tuple[str, str | None]]) -> None:
    for key, text in tags:
        attribute = attributes.add(key=key)
        if text is not None:
            attribute.value.string_value = text


def _add_point(metric: Any, row: Mapping[str, Any]) -> int:
    """Add the point of a row to its metric; returns its bytes."""
    kind = row["kind"]
    data = getattr(metric, kind)
    point = data.data_points.add(flags=(row["flags"] or 0) & _UNSIGNED)
    if kind not in ("gauge", "summary"):
        data.aggregation_temporality = _TEMPORALITIES[row["temporality"]]
    if kind == "sum":
        data.is_monotonic = bool(row["is_monotonic"])
    _FILLS[kind](point, row)
    # 0 is OTLP's 'not set'.
    point.time_unix_nano = (row["event_time"] or 0) * NS_PER_US
    point.start_time_unix_nano = (row["start_time"] or 0) * NS_PER_US
    _fill(point.attributes, _own(row["attributes"]))
    return int(point.ByteSize())


def _number(point: Any, row: Mapping[str, Any]) -> None:
    if row["value_int"] is not None:
        point.as_int = row["value_int"]
    elif row["value"] is not None:
        point.as_double = row["value"]


def _totals(point: Any, row: Mapping[str, Any], names: Iterable[str]) -> None:
    for name in names:
        if row[f"histogram_{name}"] is not None:
            setattr(point, name, row[f"histogram_{name}"])


def _histogram(point: Any, row: Mapping[str, Any]) -> None:
    _totals(point, row, ("count", "sum", "min", "max"))
    point.explicit_bounds.extend(row["histogram_bounds"] or ())
    point.bucket_counts.extend(row["histogram_bucket_counts"] or ())


def _exponential(point: Any, row: Mapping[str, Any]) -> None:
    _totals(point, row, ("count", "sum", "min", "max"))
    point.scale = row["exponential_scale"] or 0
    point.zero_count = row["exponential_zero_count"] or 0
    # -0.0 is false too.
    if row["exponential_zero_threshold"] is not None:
        point.zero_threshold = row["exponential_zero_threshold"]
    for side in ("positive", "negative"):
        buckets = row[f"exponential_{side}"]
        if buckets is not None:
            getattr(point, side).offset = buckets["offset"] or 0
            getattr(point, side).bucket_counts.extend(buckets["bucket_counts"] or ())


def _summary(point: Any, row: Mapping[str, Any]) -> None:
    _totals(point, row, ("count", "sum"))
    for each in row["quantiles"] or ():
        point.quantile_values.add(quantile=each["quantile"], value=each["value"])


_FILLS = {
    "gauge": _number,
    "sum": _number,
    "histogram": _histogram,
    "exponential_histogram": _exponential,
    "summary": _summary,
}
