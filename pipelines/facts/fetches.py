"""`fetches`: one row per answered FETCH, with the partitions its session requests (KIP-227).

`fetch_sessions` is the state between micro-batches. It is written last: a replayed batch starts
from the same state as before, and rows that were written already are not written again.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from quotaflow.pipelines.config import FetchSessionsSection
from quotaflow.pipelines.spark.caching import cached
from quotaflow.pipelines.streaming.sinks import Batch, Count
from quotaflow.schemas.tables.fetches import FETCH_SESSIONS, FETCHES
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.udfs import fetch_sessions
from quotaflow.udfs.fetch_sessions import END, FETCH, KEY, SESSION
from quotaflow.udfs.rules.fetch_session import MAX_EPOCH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_BROKER = ["cluster_id", "broker_id"]
_EVER = "session_id IS NOT NULL"
_OF_LINE = [name for name in fetch_sessions.ROWS.names if name in REQUESTS.column_names]
_IS_FULL = "coalesce(session_epoch, -1) <= 0"
_NAMED = "coalesce(session_id, 0)"
_STARTED = f"if({_IS_FULL}, coalesce(response_session_id, 0), 0)"
# A line belongs to the session it starts, else to the one it names. If it starts one and so ends
# another, it belongs to both.
_SESSIONS = f"""inline(case
when {_STARTED} <> 0 and {_NAMED} not in (0, {_STARTED}) then array(
    named_struct('session', {_STARTED}, 'kind', '{FETCH}'),
    named_struct('session', {_NAMED}, 'kind', '{END}'))
else array(named_struct('session', coalesce(nullif({_STARTED}, 0), {_NAMED}), 'kind', '{FETCH}'))
end)"""
# Lines of one session and millisecond are ordered by epoch; its end is last.
_EPOCH = f"""case
when kind = '{END}' or ({_IS_FULL} and session = {_NAMED}) then {MAX_EPOCH + 1}
else session_epoch
end"""
# Fetches without a session do not depend on others: they need not meet in one partition.
_ALONE = "if(session = 0, source_offset, null)"


@dataclass(frozen=True, slots=True)
class Fetches:
    """Appends the fetches of each micro-batch of requests, and keeps the sessions they leave."""

    conf: FetchSessionsSection

    def write(self, requests: "DataFrame", batch: Batch) -> None:
        """Follow every session, append, and report the counts of fetches and dropped sessions."""
        spark = requests.sparkSession
        sessions = batch.warehouse.read(spark, FETCH_SESSIONS.name)
        with (
            cached(follow(requests, sessions, self.conf.idle_s)) as followed,
            cached(with_dropped(followed, self.conf)) as kept,
        ):
            fetched = followed.where(F.col("kind") == FETCH)
            summary = fetched.agg(
                F.count(F.lit(1)).alias("rows"),
                F.max("event_time").alias("newest"),
                F.max_by("cluster_id", "event_time").alias("cluster_id"),
            ).collect()[0]
            if not summary["rows"]:
                return
            counts = _counts(summary["rows"], kept.groupBy("dropped").count().collect())
            batch.append(fetched, FETCHES)
            batch.report(lambda: spark, counts, summary["cluster_id"], summary["newest"])
            batch.replace(kept.where("dropped IS NULL"), FETCH_SESSIONS, _EVER)


def lines(requests: "DataFrame") -> "DataFrame":
    """The columns of FETCH requests that `follow` reads, each line with the sessions it belongs to.

    Part of the stream's own plan, because a micro-batch in foreachBatch has every column read.
    """
    return requests.where("api = 'FETCH'").select(*_OF_LINE, F.expr(_SESSIONS))


def follow(requests: "DataFrame", sessions: "DataFrame", idle_s: int) -> "DataFrame":
    """Fetches, and the sessions after them; column `kind` says which a row is.

    `requests` are rows of `lines`.
    """
    own = {"session": F.col("session_id"), "kind": F.lit(SESSION)}
    return (
        requests.unionByName(sessions.withColumns(own), allowMissingColumns=True)
        .repartition(*KEY, F.expr(_ALONE))
        .sortWithinPartitions(
            *KEY,
            F.col("kind") != SESSION,
            "event_time",
            F.expr(_EPOCH),
            "source_partition",
            "source_offset",
        )
        .select(fetch_sessions.ROWS.names)
        .mapInArrow(fetch_sessions.follow_sessions(idle_s), fetch_sessions.FOLLOWED_SQL)
    )


def with_dropped(followed: "DataFrame", conf: FetchSessionsSection) -> "DataFrame":
    """The sessions with column `dropped`: the reason, or null for those that are kept."""
    # A broker's clock that was once ahead must not make all its other sessions look idle.
    newest = (
        followed.where(F.col("event_time") <= F.current_timestamp())
        .groupBy(*_BROKER)
        .agg(F.max("event_time").alias("newest"))
    )
    sessions = followed.where(F.col("kind") == SESSION).join(F.broadcast(newest), _BROKER, "left")
    by_age = Window.partitionBy(*_BROKER).orderBy(F.desc("event_time"), F.desc("session_id"))
    idle = F.col("newest") - F.col("event_time") > F.make_dt_interval(secs=F.lit(conf.idle_s))
    return sessions.withColumn("place", F.row_number().over(by_age)).withColumn(
        "dropped",
        F.when(idle, "idle").when(F.col("place") > conf.slots_per_broker, "over_slots"),
    )


def _counts(lines: int, sessions: "list[Row]") -> list[Count]:
    table, state = FETCHES.name, FETCH_SESSIONS.name
    of_sessions = [
        Count("left_out" if row["dropped"] else "out", row["count"], state, row["dropped"])
        for row in sessions
    ]
    return [Count("in", lines, table), Count("out", lines, table), *of_sessions]
