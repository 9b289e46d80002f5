"""Points as flat Arrow columns: those of a point and the normalised ones of client_metrics."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.schemas import metrics as catalogue
from quotaflow.schemas.table import BOOLEAN, DOUBLE, INT, LONG, STRING, TIMESTAMP
from quotaflow.schemas.tables.declared import CLIENT_METRICS
from quotaflow.udfs.otlp.arrays import Ints, Unsigned
from quotaflow.udfs.otlp.attribute_sets import MAP, AttributeSets, repeated
from quotaflow.udfs.otlp.attributes import node, whole_number
from quotaflow.udfs.otlp.batch import DecodedBatch
from quotaflow.udfs.otlp.exact import NS_PER_US
from quotaflow.udfs.otlp.numbers import Numbers

_MANY = 1 << 17
_MOST_BYTES = 1 << 30
_TEMPORALITIES = {1: "delta", 2: "cumulative"}
_CLIENT_KEYS = {
    "group_id": ("group_id",),
    "group_instance_id": ("group_instance_id",),
    "member_id": ("member_id", "group_member_id"),
    "transactional_id": ("transactional_id",),
    "application_id": ("application_id",),
    "client_rack": ("client_rack",),
}
_PLACES = ("topic", "partition", "node_id", "node_kind")
_OF_POINTS = CLIENT_METRICS.columns[1 : CLIENT_METRICS.column_names.index("series_id")]
"""Behind the cluster, and before what a push says of its client."""
_POINT_TYPES = {column.name: column.type for column in _OF_POINTS}

SCHEMA = pa.schema(
    [CLIENT_METRICS.arrow.field(name) for name in (*_POINT_TYPES, *_PLACES, *_CLIENT_KEYS)]
)
"""The columns of one decoded point, in the order of client_metrics."""


def points(batch: DecodedBatch, rows: Ints) -> pa.RecordBatch:
    """The points at `rows`, which are in order, with the columns of SCHEMA."""
    numbers, resource, scope = batch.points.numbers, batch.resource, batch.scope
    if len(rows) < len(batch.keep):
        names = Numbers.__dataclass_fields__
        numbers = Numbers(**{name: getattr(numbers, name)[rows] for name in names})
        resource, scope = resource[rows], scope[rows]
    columns = {
        "event_time": _timestamps(numbers.time_ns),
        "start_time": _timestamps(numbers.start_ns),
        **_names(batch, numbers),
        **_values(batch, numbers),
        **_rare(batch, rows),
        **_clients(batch, numbers, resource),
        **_scopes(batch, scope),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _timestamps(ns: Unsigned) -> Any:
    """Microseconds of UTC; 0 is OTLP's 'not set'. Every unsigned 64-bit time fits (year 2554)."""
    us = (ns // np.uint64(NS_PER_US)).view(np.int64)
    return pa.array(us, mask=None if ns.all() else ns == 0).view(TIMESTAMP)


def _take(distinct: Iterable[Any], type_: pa.DataType, numbers: Any) -> Any:
    """A column of few distinct values, chosen by number."""
    return _taken(pa.array(list(distinct), type_), numbers)


def _taken(values: Any, numbers: Any) -> Any:
    if values.null_count == len(values):
        return _nulls(len(numbers), values.type)
    if (
        len(values) == 1
        and values.type in (STRING, MAP)
        and values.nbytes * len(numbers) < _MOST_BYTES
    ):
        return repeated(values, len(numbers))
    return values.take(numbers)


def _nulls(count: int, type_: pa.DataType) -> Any:
    """A column of nulls, in shared memory, because a third of the columns are mostly null."""
    return _many_nulls(type_)[:count] if count <= _MANY else pa.nulls(count, type_)


@cache
def _many_nulls(type_: pa.DataType) -> Any:
    return pa.nulls(_MANY, type_)


def _names(batch: DecodedBatch, numbers: Numbers) -> dict[str, Any]:
    names = batch.points.names
    header, form = pa.array(numbers.header), pa.array(numbers.form)
    units = (unit or catalogue.unit_of(name) for name, unit in names.headers)
    is_catalogued = (name in catalogue.METRICS for name, _ in names.headers)
    temporalities = [_TEMPORALITIES.get(form.temporality) for form in names.forms]
    return {
        "metric": _take((name for name, _ in names.headers), STRING, header),
        "unit": _take(units, STRING, header),
        "in_catalogue": _take(is_catalogued, BOOLEAN, header),
        "kind": _take((form.kind for form in names.forms), STRING, form),
        "temporality": _take(temporalities, STRING, form),
        "is_monotonic": _take((form.is_monotonic for form in names.forms), BOOLEAN, form),
        "flags": _take((form.flags for form in names.forms), INT, form),
    }


def _values(batch: DecodedBatch, numbers: Numbers) -> dict[str, Any]:
    """The number as a double, and exactly in a second column if it is an integer."""
    kinds = np.array([form.number or "" for form in batch.points.names.forms], "U6")
    is_int, is_none = (kinds == "int")[numbers.form], (kinds == "")[numbers.form]
    integers = numbers.bits.view(np.int64)
    value = np.where(is_int, integers.astype(np.float64), numbers.bits.view(np.float64))
    return {
        "value": pa.array(value, DOUBLE, mask=is_none if is_none.any() else None),
        "value_int": pa.array(integers, LONG, mask=~is_int),
    }


def _rare(batch: DecodedBatch, rows: Ints) -> dict[str, Any]:
    """Columns of histograms, summaries and exemplars: null where a point has none."""
    rare = batch.points.rare
    if not rare:
        return {name: _nulls(len(rows), _POINT_TYPES[name]) for name in _RARE_NAMES}
    rare_rows = [(i, rare[row]) for i, row in enumerate(rows.tolist()) if row in rare]
    places = np.full(len(rows), len(rare_rows))
    places[[i for i, _ in rare_rows]] = np.arange(len(rare_rows))
    indices = pa.array(places)
    return {
        name: _take([*(row.get(name) for _, row in rare_rows), None], _POINT_TYPES[name], indices)
        for name in _RARE_NAMES
    }


_RARE_NAMES = [
    name
    for name in _POINT_TYPES
    if name.startswith(("histogram_", "exponential_")) or name in ("quantiles", "exemplars")
]


def _clients(batch: DecodedBatch, numbers: Numbers, resource: Ints) -> dict[str, Any]:
    """Attributes and resource as maps, and the columns of place and client from them."""
    sets, sent = batch.points.names.attributes, batch.resources
    attributes, resources = pa.array(numbers.attributes), pa.array(resource)
    filled = {
        "attributes": _taken(sets.maps(), attributes),
        "resource": _taken(sent.maps(), resources),
    }
    for name, column in places(sets).items():
        filled[name] = _taken(column, attributes)
    own_keys, sent_keys = sets.keys, sent.keys
    for name, keys in _CLIENT_KEYS.items():
        filled[name] = _taken(_first(sent, sent_keys, keys), resources)
        if own_keys.intersection(keys):
            own = _taken(_first(sets, own_keys, keys), attributes)
            filled[name] = pc.coalesce(filled[name], own)
    return filled


def places(sets: AttributeSets) -> dict[str, Any]:
    """What each set says its point is about: topic and partition, or the node it was measured at.

    In the spelling of any client.
    """
    keys = sets.keys
    nodes = _first(sets, keys, ("node_id", "node.id"))
    return {
        "topic": _first(sets, keys, ("topic",)),
        "partition": _each(whole_number, _first(sets, keys, ("partition",)), INT),
        "node_id": _each(lambda text: node(text)[0], nodes, INT),
        "node_kind": _each(lambda text: node(text)[1], nodes, STRING),
    }


def _first(sets: AttributeSets, present: frozenset[str], keys: Iterable[str]) -> Any:
    """The value of the first key that has one; clients send an empty text for none."""
    firsts = None
    for key in keys:
        if key in present:
            values = sets.column(key)
            firsts = values if firsts is None else pc.coalesce(firsts, values)
    return pa.nulls(len(sets), STRING) if firsts is None else firsts


def _each(read: Callable[[str | None], Any], texts: Any, type_: pa.DataType) -> Any:
    """What `read` makes of each text, called once for each distinct one."""
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), type_)
    encoded = texts.dictionary_encode()
    return pa.array(map(read, encoded.dictionary.to_pylist()), type_).take(encoded.indices)


def _scopes(batch: DecodedBatch, scope: Ints) -> dict[str, Any]:
    scopes = pa.array(scope)
    return {
        "scope_name": _take((name or None for name, _ in batch.scopes), STRING, scopes),
        "scope_version": _take((version or None for _, version in batch.scopes), STRING, scopes),
    }
