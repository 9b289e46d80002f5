"""Subscriptions of clients (KIP-714), in Arrow batches: what an answer's id should be, and what
configured client-metrics resources give each client."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import starmap

import pyarrow as pa

from quotaflow.schemas.table import INT, STRING
from quotaflow.udfs.rules.client_metrics import (
    Client,
    Subscription,
    effective,
    matches,
    subscription_id,
)

EXPECTED = "expected_subscription_id"
_INPUT_COLUMNS = ("error_code", "requested_metrics", "push_interval_ms", "client_instance_id")

PREDICTED = pa.schema(
    [
        pa.field("subscriptions", pa.list_(STRING)),
        pa.field("predicted_metrics", pa.list_(STRING)),
        pa.field("predicted_interval_ms", INT),
    ]
)
_CLIENT = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_address",
    "client_port",
)

_Batches = Iterator[pa.RecordBatch]


def with_expected_id(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For mapInArrow: fills EXPECTED, null where an answer was an error or names no instance."""
    for batch in batches:
        answers = zip(*(batch.column(name).to_pylist() for name in _INPUT_COLUMNS), strict=True)
        at = batch.schema.get_field_index(EXPECTED)
        yield batch.set_column(at, EXPECTED, pa.array(starmap(_expected, answers), INT))


def _expected(
    error: int | None, metrics: list[str | None] | None, interval: int | None, instance: str | None
) -> int | None:
    if error or metrics is None or interval is None or instance is None:
        return None
    named = [name for name in metrics if name is not None]
    return subscription_id(named, interval, instance) if len(named) == len(metrics) else None


def predict(subscriptions: Sequence[Subscription]) -> Callable[[_Batches], _Batches]:
    """A function for mapInArrow: adds PREDICTED to rows that name a client."""
    return partial(_predict, tuple(subscriptions))


def _predict(subscriptions: Sequence[Subscription], batches: _Batches) -> _Batches:
    for batch in batches:
        names = (batch.column(name).to_pylist() for name in _CLIENT)
        rows = [_predicted(subscriptions, Client(*values)) for values in zip(*names, strict=True)]
        predicted = pa.RecordBatch.from_pylist(rows, schema=PREDICTED)
        columns = {name: batch.column(name) for name in batch.schema.names}
        columns |= {name: predicted.column(name) for name in PREDICTED.names}
        yield pa.RecordBatch.from_pydict(columns)


def _predicted(subscriptions: Sequence[Subscription], client: Client) -> dict[str, object]:
    metrics, interval_ms = effective(subscriptions, client)
    return {
        "subscriptions": sorted(s.name for s in subscriptions if matches(s, client)),
        "predicted_metrics": sorted(metrics),
        "predicted_interval_ms": interval_ms,
    }
