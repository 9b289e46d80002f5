"""`client_metrics`: one row per data point, decoded from telemetry_pushes."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quotaflow.schemas import tables
from quotaflow.udfs import otlp
from quotaflow.udfs.codecs import Limits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UNIQUE, POINTS = "unique_pushes", "points"
_ONE_PUSH = ["client_instance_id", "payload_sha256"]
_OF_PUSH = [
    name
    for name in tables.TELEMETRY_PUSHES.column_names
    if name in tables.CLIENT_METRICS.column_names
] + ["compression", "payload"]


def decode(pushes: "DataFrame", limits: Limits, max_lateness_s: int) -> "DataFrame":
    """Readable pushes to data points, the same push on two routes once.

    Counts what it passes under the names UNIQUE and POINTS (observed metrics of the query).
    """
    readable = pushes.where("unreadable_reason IS NULL").select(*_OF_PUSH)
    once = readable.withWatermark("event_time", f"{max_lateness_s} seconds")
    once = once.dropDuplicatesWithinWatermark(_ONE_PUSH).observe(
        UNIQUE, F.count(F.lit(1)).alias("rows")
    )
    points = once.mapInArrow(otlp.decode_pushes(limits), tables.CLIENT_METRICS.sql_schema)
    return points.observe(POINTS, F.count(F.lit(1)).alias("rows"))
