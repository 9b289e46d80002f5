"""`client_metrics`: one row per data point, decoded from telemetry_pushes."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quotaflow.schemas import tables
from quotaflow.udfs import otlp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UNIQUE, POINTS = "unique_pushes", "points"
_ONE_PUSH = ["client_instance_id", "payload_sha256"]


def decode(pushes: "DataFrame", limits: otlp.Limits, max_lateness_s: int) -> "DataFrame":
    """Readable pushes to data points, the same push on two routes once.

    Counts what it passes under the names UNIQUE and POINTS (observed metrics of the query).
    """
    readable = pushes.where("unreadable_reason IS NULL").withColumnRenamed("event_time", "push_time")
    once = readable.withWatermark("push_time", f"{max_lateness_s} seconds")
    once = once.dropDuplicatesWithinWatermark(_ONE_PUSH).observe(UNIQUE, F.count(F.lit(1)).alias("rows"))
    points = once.select(*otlp.PUSH_COLUMNS).mapInArrow(
        otlp.decode_pushes(limits), tables.CLIENT_METRICS.sql_schema
    )
    return points.observe(POINTS, F.count(F.lit(1)).alias("rows"))
