"""Rows of `telemetry_subscriptions`: GetTelemetrySubscriptions answers (KIP-714)."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.schemas.events import SUBSCRIPTIONS
from quotaflow.schemas.table import INT, STRING
from quotaflow.schemas.tables.declared import TELEMETRY_SUBSCRIPTIONS
from quotaflow.udfs.facts.telemetry_pushes import compression
from quotaflow.udfs.rules.client_metrics import subscription_id

_CODECS = pa.list_(STRING)


def from_lines(requests: pa.Table, telemetry: pa.Table) -> pa.Table:
    """The answers among rows of `requests`; `telemetry` as `pushes.from_lines` takes it."""
    fields = telemetry.filter(pc.equal(telemetry["api_name"], SUBSCRIPTIONS))
    rows = requests.take(fields["line"])
    answers = fields.to_pylist()
    errors = rows["error_code"].to_pylist()
    codecs = [_codecs(answer["accepted_compression_types"]) for answer in answers]
    expected = [_expected(error, answer) for error, answer in zip(errors, answers, strict=True)]
    given: dict[str, Any] = {name: rows[name] for name in rows.column_names} | {
        "client_instance_id": fields["response_instance_id"],
        "subscription_id": fields["response_subscription_id"],
        "expected_subscription_id": pa.array(expected, INT),
        "accepted_compression": pa.array(codecs, _CODECS),
        "push_interval_ms": fields["push_interval_ms"],
        "telemetry_max_bytes": fields["telemetry_max_bytes"],
        "delta_temporality": fields["delta_temporality"],
        "requested_metrics": fields["requested_metrics"],
    }
    schema = TELEMETRY_SUBSCRIPTIONS.arrow
    return pa.Table.from_arrays([given[f.name].cast(f.type) for f in schema], schema=schema)


def _codecs(numbers: list[str | None] | None) -> list[str | None] | None:
    """Names of Kafka's compression ids, which the parser leaves as text."""
    if numbers is None:
        return None
    return [compression(int(n)) if n is not None and n.isdecimal() else None for n in numbers]


def _expected(error: int | None, answer: dict[str, Any]) -> int | None:
    """The id by Kafka's formula; null where an answer was an error or names no instance."""
    metrics, interval = answer["requested_metrics"], answer["push_interval_ms"]
    instance = answer["response_instance_id"]
    if error or metrics is None or interval is None or instance is None or None in metrics:
        return None
    return subscription_id(metrics, interval, instance)
