"""`client_metrics`: one row per data point, decoded from telemetry_pushes.

In a folder tasks write its files, and the driver commits their names. In a catalog, and where a
point must be compared with those of the table, points go through Spark.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import Observation, Window
from pyspark.sql import functions as F

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.spark.caching import cached
from quotaflow.pipelines.spark.frames import without
from quotaflow.pipelines.streaming.sinks import Batch, Count, rows_by_cluster
from quotaflow.pipelines.warehouse.time_ranges import TimeRange, any_of, merged
from quotaflow.schemas.tables.declared import CLIENT_METRICS, TELEMETRY_PUSHES
from quotaflow.udfs.otlp import decode as otlp
from quotaflow.udfs.otlp import point_files
from quotaflow.udfs.otlp.codecs import Limits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNIQUE = "unique_pushes"
_BY_NOW = "event_time_by_now"
_ONE_PUSH = ["client_instance_id", "payload_sha256"]
# The values are part of it: librdkafka reports several connections under one node id.
_ONE_POINT = ["cluster_id", "series_id", "event_time", "start_time", "value", "value_int"]
_OF_PUSH = [
    name for name in TELEMETRY_PUSHES.column_names if name in CLIENT_METRICS.column_names
] + ["compression", "payload"]
READ = [*_OF_PUSH, "unreadable_reason"]
"""The columns of telemetry_pushes that the stream reads."""
_COUNT = "count(1) AS rows"
# A record may have no time: then the time of its event decides.
_RECORD_TIME = "coalesce(record_time, event_time)"
_CLUSTER = f"max_by(cluster_id, {_RECORD_TIME}) AS cluster_id"
# The request log has the broker's answer; the view unique_pushes prefers it, too.
_IS_LOGGED = "route = 'request_log'"
_PLACE = ["event_time", "source_topic", "source_partition", "source_offset"]


def each_push_once(pushes: "DataFrame", max_lateness_s: int) -> "DataFrame":
    """The stream of readable pushes; a push that came on two routes passes once, by either.

    The first to come passes; within a batch, any. A time in the future does not make other pushes
    late: if a broker's clock is ahead, so may be its records', because the same machine may ship
    them. Now is the micro-batch's time, the same in a replay. Counts the pushes that pass under the
    name UNIQUE, an observed metric of the query.
    """
    readable = pushes.where("unreadable_reason IS NULL").select(*_OF_PUSH)
    by_now = readable.withColumn(_BY_NOW, F.least("event_time", F.current_timestamp()))
    once = by_now.withWatermark(_BY_NOW, f"{max_lateness_s} seconds")
    unique = once.dropDuplicatesWithinWatermark(_ONE_PUSH).drop(_BY_NOW)
    return unique.observe(UNIQUE, F.expr(_COUNT))


def decode(pushes: "DataFrame", limits: Limits) -> "DataFrame":
    """Pushes to data points."""
    return pushes.mapInArrow(otlp.decode_pushes(limits), CLIENT_METRICS.sql_schema)


@dataclass(frozen=True, slots=True)
class PointIngest:
    """Appends the points of each micro-batch of pushes.

    If conf reads the topic of a Collector too, a point that is in the table already is left out: a
    Collector batches points again, so its payloads never equal those of other routes.
    """

    conf: Conf

    def write(self, pushes: "DataFrame", batch: Batch) -> None:
        """Decode and append, and report how many points were appended and how many left out."""
        limits, is_compared = self.conf.payloads.limits, self.conf.ingest.otlp_topic is not None
        if batch.takes_files and not is_compared:
            counts, cluster_id = _append_files(pushes, limits, batch)
        else:
            append = _append_unseen if is_compared else _append
            counts, cluster_id = append(decode(pushes, limits), batch)
        if any(count.rows for count in counts):
            batch.report(lambda: pushes.sparkSession, counts, cluster_id, datetime.now(UTC))

    def replace(
        self, spark: "SparkSession", batch: Batch, time_range: TimeRange
    ) -> dict[str | None, int]:
        """Decode the pushes of a range of record time again. Returns points by cluster.

        A push that has points outside the range, from another route, is left out. If a push came on
        two routes within the range, that of the request log is decoded.
        """
        read = partial(batch.warehouse.read, spark)
        in_range = time_range.condition(_RECORD_TIME)
        pushes = read(TELEMETRY_PUSHES.name).where(f"unreadable_reason IS NULL AND {in_range}")
        stay = read(CLIENT_METRICS.name).where(f"NOT {in_range}")
        once = without(_best_of_each(pushes), stay, _ONE_PUSH)
        points = decode(once, self.conf.payloads.limits)
        if self.conf.ingest.otlp_topic is not None:
            points = without(points.dropDuplicates(_ONE_POINT), stay, _ONE_POINT)
        with cached(points) as kept:
            batch.replace(kept, CLIENT_METRICS, in_range)
            return rows_by_cluster(kept)


def _best_of_each(pushes: "DataFrame") -> "DataFrame":
    best_first = Window.partitionBy(*_ONE_PUSH).orderBy(F.expr(_IS_LOGGED).desc(), *_PLACE)
    ranked = pushes.withColumn("place", F.row_number().over(best_first))
    return ranked.where("place = 1").select(*_OF_PUSH)


def _append_files(
    pushes: "DataFrame", limits: Limits, batch: Batch
) -> tuple[list[Count], str | None]:
    """Append points that tasks write. Returns as `_append`; a replayed batch writes files again,
    which no commit names.
    """
    table = CLIENT_METRICS
    write = point_files.write_points(limits, batch.target(table))
    files = pushes.mapInArrow(write, point_files.WRITTEN_SQL).toArrow().to_pylist()
    if not files:
        return [], None
    batch.append_files(lambda: pushes.sparkSession, files, table)
    newest = max(files, key=lambda file: file["newest"])
    return [Count("out", sum(file["rows"] for file in files), table.name)], newest["cluster_id"]


def _append(points: "DataFrame", batch: Batch) -> tuple[list[Count], str | None]:
    """Append points. Returns the counts, and the cluster of the newest record."""
    table, observation = CLIENT_METRICS, Observation()
    observed = points.observe(observation, F.expr(_COUNT), F.expr(_CLUSTER))
    rows = batch.appended(points.sparkSession, table)
    if rows is None:
        batch.append(observed, table)
        rows = int(observation.get["rows"])
    else:
        # Delta would skip the append, so the plan would not run: the observation would wait for
        # ever, and Spark fails a batch that did not commit its state.
        observed.write.format("noop").mode("overwrite").save()
    return [Count("out", rows, table.name)], observation.get["cluster_id"]


def time_ranges_of(points: "DataFrame") -> list[TimeRange]:
    """The time ranges of points, by day: one client whose clock is far off adds little."""
    day = F.floor(F.unix_seconds("event_time") / 86_400)
    ends = [F.min("us").alias("first"), F.max("us").alias("last")]
    times = points.select(day.alias("day"), F.unix_micros("event_time").alias("us"))
    days = times.groupBy("day").agg(*ends).collect()
    return merged(TimeRange(_at(day["first"]), _at(day["last"] + 1)) for day in days)


def _at(us: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=us)


def _append_unseen(points: "DataFrame", batch: Batch) -> tuple[list[Count], str | None]:
    table = CLIENT_METRICS
    with cached(points) as decoded:
        summary = decoded.agg(F.expr(_COUNT), F.expr(_CLUSTER)).collect()[0]
        if not summary["rows"]:
            return [], None
        there = batch.warehouse.read(points.sparkSession, table.name)
        there = there.where(
            any_of(times.condition("event_time") for times in time_ranges_of(decoded))
        )
        unseen = without(decoded.dropDuplicates(_ONE_POINT), there, _ONE_POINT)
        (kept,), _ = _append(unseen, batch)
        same = Count("left_out", summary["rows"] - kept.rows, table.name, "same_point")
        return [kept, same], summary["cluster_id"]
