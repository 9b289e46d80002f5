"""Sends points of clients to a receiver of OTLP beside the tables: each at least once.

A batch that the receiver does not take is sent again, whole, until its points are too old. So the
receiver delays no other job, and what waits for it is bounded. Each point is counted: sent, left
out, late, or refused.
"""

import math
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from quotaflow.pipelines.config.monitoring import Forward
from quotaflow.pipelines.facts.otlp_receiver import Endpoint
from quotaflow.pipelines.streaming.sinks import Batch, Count
from quotaflow.udfs.otlp import requests

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

READ = (*requests.READ, "record_time", "accepted", "is_topic_twin")
"""The columns of client_metrics that the stream reads."""
_TARGET = "otlp"
# A record may have no time: then the time of its event decides.
_RECORD_TIME = "coalesce(record_time, event_time)"


@dataclass(frozen=True, slots=True)
class PointForwarding:
    """Sends the points of each micro-batch. The endpoint is looked up beside the session, because
    batches may run without access to secrets.
    """

    conf: Forward
    endpoint: Endpoint

    def write(self, points: "DataFrame", batch: Batch) -> None:
        """Send what conf selects, and report what became of each point.

        Raises ReceiverAwayError: then the batch is sent again.
        """
        why_not = self._why_not(datetime.now(UTC), _made(batch))
        groups = _groups(points, why_not)
        counts = Counter[tuple[str, str | None]]()
        for group in groups:
            outcome = "late" if group["why_not"] == "past_max_age" else "left_out"
            if group["why_not"] is not None:
                counts[outcome, group["why_not"]] = group["points"]
        if len(counts) < len(groups):
            counts += self._sent(points.where(why_not.isNull()))
        if groups:
            newest = max(groups, key=lambda group: group["newest"])
            total = Count("in", sum(group["points"] for group in groups), _TARGET)
            outcomes = (Count(name, n, _TARGET, why) for (name, why), n in counts.items())
            cluster_id, at = newest["cluster_id"], newest["newest"]
            batch.report(lambda: points.sparkSession, [total, *outcomes], cluster_id, at)

    def _why_not(self, now: datetime, made: datetime) -> "Column":
        """Why a point is not sent; null: it is sent."""
        oldest = now - timedelta(seconds=self.conf.max_age_s)
        start = made - timedelta(seconds=self.conf.max_age_s)
        time_of = F.expr(_RECORD_TIME)
        return (
            F.when(~F.coalesce(self._selected(), F.lit(False)), "not_selected")
            .when(F.col("is_topic_twin"), "topic_twin")
            # The client pushes the time of a rejected push again.
            .when(~F.col("accepted"), "rejected")
            # All such points would have the same resource, so their series would be one.
            .when(F.col("client_instance_id").isNull(), "no_client")
            .when(time_of < F.lit(start), "before_first_run")
            .when(time_of < F.lit(oldest), "past_max_age")
        )

    def _selected(self) -> "Column":
        selected = F.lit(True)
        if self.conf.metrics:
            selected = F.lit(False)
            for pattern in self.conf.metrics:
                selected = selected | F.col("metric").like(_like(pattern))
        for key, pattern in self.conf.labels.items():
            selected = selected & F.col("attributes").getItem(key).like(_like(pattern))
        return selected

    def _sent(self, points: "DataFrame") -> Counter[tuple[str, str | None]]:
        """Send points, those of a client in their order; returns them by outcome."""
        rows = points.select(*requests.READ).repartition("client_instance_id")
        made = rows.sortWithinPartitions(*requests.ORDER).mapInArrow(
            requests.encode, requests.REQUEST_SQL
        )
        receiver, began = self.endpoint.open(), math.inf
        counts = Counter[tuple[str, str | None]]()
        # One partition at a time is in memory.
        for request in made.toLocalIterator():
            # From the first request on: what Spark takes before is not the receiver's time.
            began = min(began, time.monotonic())
            if time.monotonic() > began + self.conf.max_batch_s:
                counts["late", "past_max_batch"] += request["points"]
                continue
            refused, why = receiver.send(bytes(request["body"]), request["points"])
            counts["out", None] += request["points"] - refused
            counts["refused", why] += refused
        return counts


def _groups(points: "DataFrame", why_not: "Column") -> list[Any]:
    """Points by why they are not sent, with the newest time, and its cluster."""
    at = F.expr(_RECORD_TIME)
    columns = points.select(why_not.alias("why_not"), at.alias("at"), "cluster_id")
    return (
        columns.groupBy("why_not")
        .agg(
            F.count(F.lit(1)).alias("points"),
            F.max("at").alias("newest"),
            F.max_by("cluster_id", "at").alias("cluster_id"),
        )
        .collect()
    )


def _like(pattern: str) -> str:
    r"""A pattern of conf as one of LIKE, where \\, % and _ are special."""
    for special in "\\%_":
        pattern = pattern.replace(special, f"\\{special}")
    return pattern.replace("*", "%")


def _made(batch: Batch) -> datetime:
    """When the query was made: what is older was not to be sent."""
    file = batch.warehouse.checkpoint(batch.job) / "metadata"
    return datetime.fromtimestamp(file.stat().st_mtime, UTC)
