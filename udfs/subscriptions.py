"""Subscriptions of clients (KIP-714), in Arrow batches: what an answer's id should be."""

from collections.abc import Iterator
from itertools import starmap

import pyarrow as pa

from quotaflow.schemas.table import INT
from quotaflow.udfs.rules.client_metrics import subscription_id

EXPECTED = "expected_subscription_id"
_INPUT_COLUMNS = ("error_code", "requested_metrics", "push_interval_ms", "client_instance_id")


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
