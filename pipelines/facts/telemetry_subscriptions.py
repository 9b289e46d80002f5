"""`telemetry_subscriptions`: one row per GetTelemetrySubscriptions answer (KIP-714)."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from quotaflow.pipelines.facts.telemetry_pushes import compression
from quotaflow.schemas.tables.telemetry import TELEMETRY_SUBSCRIPTIONS
from quotaflow.udfs import subscriptions


def from_requests(parsed: DataFrame) -> DataFrame:
    """GET_TELEMETRY_SUBSCRIPTIONS lines of the parsed request log."""
    response = F.col("line.r.response")
    answers = parsed.where(
        (F.col("api") == "GET_TELEMETRY_SUBSCRIPTIONS")
        & F.col("reason").isNull()
        & F.col("left_out").isNull()
    )
    table = TELEMETRY_SUBSCRIPTIONS
    rows = answers.withColumns(
        {
            "client_instance_id": response["clientInstanceId"],
            "subscription_id": response["subscriptionId"],
            subscriptions.EXPECTED: F.lit(None).cast("int"),
            "accepted_compression": F.transform(response["acceptedCompressionTypes"], compression),
            "push_interval_ms": response["pushIntervalMs"],
            "telemetry_max_bytes": response["telemetryMaxBytes"],
            "delta_temporality": response["deltaTemporality"],
            "requested_metrics": response["requestedMetrics"],
        }
    ).select(table.column_names)
    return rows.mapInArrow(subscriptions.with_expected_id, table.sql_schema)
