"""`quarantine`: records and payloads that cannot be read, with a reason and the first 4 KiB."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from quotaflow.schemas.tables.control import QUARANTINE
from quotaflow.udfs.otlp import bad_text

HEAD_BYTES = 4_096
# Kafka logs these bodies in full, and they hold credentials.
_TELLTALE = r"SASL_AUTHENTICATE|DELEGATION_TOKEN|SCRAM_CREDENTIALS|ENVELOPE|saltedPassword|hmac"
_DETAIL_CHARS = 500


def from_lines(parsed: DataFrame) -> DataFrame:
    """Records of the request-log topic that are not request lines."""
    return (
        parsed.where(F.col("reason").isNotNull())
        .withColumn("is_secret", F.col("value").cast("string").rlike(_TELLTALE))
        .withColumns(_kept("requests", F.col("api"), F.col("value")))
        .select(QUARANTINE.column_names)
    )


def from_pushes(pushes: DataFrame) -> DataFrame:
    """Pushes whose payload cannot be opened, or has metrics that cannot be read.

    The push itself stays in telemetry_pushes.
    """
    metrics = F.concat(F.lit(bad_text.DETAIL), "unreadable_metrics")
    detail = F.when(F.col("unreadable_reason").isNull(), metrics).otherwise(
        F.col("unreadable_detail")
    )
    return (
        pushes.withColumns({"reason": reason_of_push(), "is_secret": F.lit(False)})
        .where(F.col("reason").isNotNull())
        .withColumns(_kept("client_metrics", detail, F.col("payload")))
        .withColumn("size_bytes", F.col("wire_bytes"))  # also of a payload that was rejected
        .select(QUARANTINE.column_names)
    )


def reason_of_push() -> Column:
    """Why a push is in quarantine; null if all of its payload can be read."""
    has_bad_text = F.col("unreadable_metrics") > 0
    return F.coalesce("unreadable_reason", F.when(has_bad_text, F.lit(bad_text.REASON)))


def _kept(target: str, detail: Column, value: Column) -> dict[str, Column]:
    return {
        "event_time": F.col("record_time"),
        "target": F.lit(target),
        "detail": F.substring(detail, 1, _DETAIL_CHARS),
        "size_bytes": F.length(value).cast("bigint"),
        "head": F.when(~F.col("is_secret"), F.substring(value, 1, HEAD_BYTES)),
    }
