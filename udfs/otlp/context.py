"""Who pushed a point, for batches of a Collector: the resource names the client, not the record.

The names are those of the receiver's headers (broker/TelemetryReceiver.java), which a Collector
adds to the resource of a push, with the prefix of its Kafka receiver or without. A resource that
has an instance with the prefix is read by prefixed names alone: the Collector writes these over the
client's, and any other attribute may be the client's own. A writer to such a topic can claim to be
any client.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.schemas.events import HEADER_PREFIX
from quotaflow.schemas.tables.declared import CLIENT_METRICS
from quotaflow.udfs.otlp.arrays import Ints
from quotaflow.udfs.otlp.attributes import DROPPED, whole_number
from quotaflow.udfs.otlp.batch import DecodedBatch

KEYS = {
    "client_instance_id": "client_instance_id",
    "principal": "principal",
    "client_id": "client_id",
    "client_software_name": "client_software_name",
    "client_software_version": "client_software_version",
    "client_address": "client_source_address",
    "client_port": "client_source_port",
    "listener": "listener",
    "broker_id": "broker_id",
}
"""Column of client_metrics -> key in the resource."""
_INSTANCE = HEADER_PREFIX + "client_instance_id"

_OTHER_HEADERS = frozenset(
    {
        "content_type",
        "terminating",
        "security_protocol",
        "request_version",
        "push_interval_ms",
        "connection_id",
    }
)


def from_resources(
    batch: DecodedBatch, rows: Ints, client_columns: Mapping[str, Any]
) -> dict[str, Any]:
    """The client columns and `resource` of the points at `rows`, filled from resources.

    Points of a push with a client instance keep their columns. The others take the columns from
    their resource, and those keys are removed from it, because the same push by another route
    does not have them.
    """
    instances = client_columns["client_instance_id"]
    if not instances.null_count:
        return {}
    unknown = instances.is_null()
    resource = pa.array(batch.resource[rows])
    is_prefixed = batch.resources.column(_INSTANCE).is_valid()
    is_cut = batch.resources.column(DROPPED).is_valid()
    filled = {}
    for name, key in KEYS.items():
        texts = batch.resources.column(key)
        if is_prefixed.true_count:
            texts = pc.if_else(is_prefixed, batch.resources.column(HEADER_PREFIX + key), texts)
        if is_cut.true_count:
            # What the Collector added is behind the client's attributes, and may be what was cut.
            texts = pc.if_else(pc.and_not(is_cut, is_prefixed), None, texts)
        claimed = _column(name, texts).take(resource)
        filled[name] = pc.if_else(unknown, claimed, client_columns[name])
    type_ = CLIENT_METRICS.arrow.field("resource").type
    resources = batch.resources.maps().to_pylist()
    left = pa.array([_without_context(tags) for tags in resources], type_).take(resource)
    return filled | {"resource": pc.if_else(unknown, left, client_columns["resource"])}


def _column(name: str, texts: Any) -> Any:
    type_ = CLIENT_METRICS.arrow.field(name).type
    if pa.types.is_integer(type_):
        return pa.array([whole_number(text) for text in texts.to_pylist()], type_)
    return texts


def _without_context(tags: list[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    if any(key == _INSTANCE and value for key, value in tags):
        return [tag for tag in tags if not tag[0].startswith(HEADER_PREFIX)]
    context = _OTHER_HEADERS.union(KEYS.values())
    return [tag for tag in tags if tag[0] not in context]
