"""`fetches`: one row per answered FETCH, with the partitions its session requests (KIP-227).

`fetch_sessions` is the state between micro-batches. It is written last: a replayed batch starts
from the same state as before, and rows that were written already are not written again. In a folder
tasks read the files of the batch and write those of `fetches`. In a catalog rows go through Spark.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from quotaflow.pipelines.compute.relations import FolderRelations
from quotaflow.pipelines.config import FetchSessionsSection
from quotaflow.pipelines.spark.caching import cached
from quotaflow.pipelines.streaming.sinks import Batch, Count
from quotaflow.pipelines.warehouse import delta_files
from quotaflow.pipelines.warehouse.row_writer import Replaced
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import BOOLEAN, LONG
from quotaflow.schemas.tables.declared import FETCH_SESSIONS, FETCHES, REQUESTS
from quotaflow.udfs import fetch_lines, fetch_sessions
from quotaflow.udfs.engine.database import DEFAULT_MEMORY_MB
from quotaflow.udfs.engine.rule import Files
from quotaflow.udfs.fetch_lines import END, FETCH, KEY, SESSION
from quotaflow.udfs.fetch_sessions import BROKER, OF_FILE, Limits, Read
from quotaflow.udfs.table_files import FILE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Broker = tuple[str, int]
"""Cluster and node id."""

# Each task reads all files of a batch, which costs a quarter of what it does with a line.
_MOST_TASKS, _LINES_PER_TASK = 8, 100_000
_BROKER = ["cluster_id", "broker_id"]
_ALL = Replaced(None)
_EPOCH_TIME = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Fetches:
    """Appends the fetches of each micro-batch of requests, and keeps the sessions they leave."""

    conf: FetchSessionsSection
    memory_mb: int = DEFAULT_MEMORY_MB

    def write(self, arrived: "DataFrame", batch: Batch) -> None:
        """Follow every session, append, and report the counts of fetches and dropped sessions.

        `arrived` are rows of `arrivals`.
        """
        write = self._write_files if batch.takes_files else self._write_lines
        write(arrived, batch)

    def _write_files(self, arrived: "DataFrame", batch: Batch) -> None:
        spark, warehouse = arrived.sparkSession, batch.warehouse
        lines = {row["file"]: row["count"] for row in arrived.groupBy("file").count().collect()}
        if not lines:
            return
        cores = int(str(spark.conf.get("spark.sql.shuffle.partitions")))
        tasks = min(cores, _MOST_TASKS, sum(lines.values()) // _LINES_PER_TASK + 1)
        read = Read(_relations(warehouse, lines), tasks, self.memory_mb)
        write = fetch_sessions.write_followed(read, self._limits(), batch.target(FETCHES))
        numbers = spark.range(0, tasks, 1, tasks)
        left = numbers.mapInArrow(write, fetch_sessions.WRITTEN_SQL).toArrow()
        files = _of_kind(left, OF_FILE).select(FILE.names).to_pylist()
        self._write(left, lambda: batch.append_files(lambda: spark, files, FETCHES), spark, batch)

    def _write_lines(self, requests: "DataFrame", batch: Batch) -> None:
        spark = requests.sparkSession
        sessions = batch.warehouse.read(spark, FETCH_SESSIONS.name)
        with cached(follow(requests, sessions, self._limits())) as followed:
            is_fetch = F.col("kind") == FETCH
            left = followed.where(~is_fetch).select(fetch_sessions.LEFT.names).toArrow()
            fetched = followed.where(is_fetch)
            self._write(left, lambda: batch.append(fetched, FETCHES), spark, batch)

    def _limits(self) -> Limits:
        return Limits(self.conf.idle_s * 1_000_000, time.time_ns() // 1_000)

    def _write(
        self, left: pa.Table, append: Callable[[], None], spark: "SparkSession", batch: Batch
    ) -> None:
        """Append fetches, and replace the sessions by those of `left` that are not dropped."""
        sessions, brokers = _of_kind(left, SESSION), _Brokers.from_rows(_of_kind(left, BROKER))
        if not brokers.lines:
            return
        reasons = drop_reasons(sessions, brokers.newest_past_us, self.conf)
        append()
        counts = _counts(brokers.lines, Counter(reasons))
        batch.report(lambda: spark, counts, brokers.cluster_id, brokers.newest)
        kept = sessions.filter(pa.array([reason is None for reason in reasons], BOOLEAN))
        batch.replace_rows(lambda: spark, kept, FETCH_SESSIONS, _ALL)


def arrivals(requests: "DataFrame", warehouse: Warehouse) -> "DataFrame":
    """What `Fetches.write` needs of a batch: in a folder the files of its lines, else `lines`.

    Part of the stream's own plan, because a micro-batch in foreachBatch has every column read.
    """
    if warehouse.conf.catalog_schema:
        return lines(requests)
    if warehouse.conf.is_store:
        return requests.where("api = 'FETCH'").select("file")
    return requests.where("api = 'FETCH'").select(F.input_file_name().alias("file"))


def lines(requests: "DataFrame") -> "DataFrame":
    """FETCH requests with the columns that are followed, each with the session it belongs to."""
    kinds = f"IF({fetch_lines.ENDS_ANOTHER}, array('{FETCH}', '{END}'), array('{FETCH}'))"
    rows = requests.where("api = 'FETCH'").select(
        *fetch_lines.OF_LINE, F.explode(F.expr(kinds)).alias("kind")
    )
    return rows.withColumn("session", F.expr(fetch_lines.OWN_SESSION))


def follow(requests: "DataFrame", sessions: "DataFrame", limits: Limits) -> "DataFrame":
    """Fetches, the sessions after them, and rows of brokers, as `fetch_sessions.FOLLOWED`.

    `requests` are rows of `lines`.
    """
    own = {"session": F.col("session_id"), "kind": F.lit(SESSION)}
    return (
        requests.unionByName(sessions.withColumns(own), allowMissingColumns=True)
        .repartition(*KEY, F.expr(fetch_lines.ALONE))
        .sortWithinPartitions(*map(F.expr, fetch_lines.ORDER))
        .select(fetch_lines.ROWS.names)
        .mapInArrow(fetch_sessions.follow_sessions(limits), fetch_sessions.FOLLOWED_SQL)
    )


def _relations(warehouse: Warehouse, uris: Iterable[str]) -> dict[str, Files]:
    """The files of these requests, and those of all sessions."""
    place, name = warehouse.place, REQUESTS.name
    delta_files.check_features(place.open(name), place.path(name))
    # Spark names a file on disk by its URI.
    paths = uris if place.store else map(delta_files.path_of, uris)
    sessions = FolderRelations(place).relation(FETCH_SESSIONS.name)
    return {name: place.files(REQUESTS, sorted(paths)), FETCH_SESSIONS.name: sessions}


def drop_reasons(
    sessions: pa.Table, newest_us: Mapping[Broker, int], conf: FetchSessionsSection
) -> list[str | None]:
    """Why each session is dropped, or None for those that are kept.

    `newest_us` has the time of the newest row of each broker. It must not be in the future: a
    broker's clock that was once ahead must not make all its other sessions look idle.
    """
    brokers = _brokers_of(sessions)
    times_us = sessions["event_time"].cast(LONG).to_pylist()
    newest_first = sorted(
        range(sessions.num_rows),
        key=list(zip(times_us, sessions["session_id"].to_pylist(), strict=True)).__getitem__,
        reverse=True,
    )
    reasons: list[str | None] = [None] * sessions.num_rows
    places = Counter[Broker]()
    for at in newest_first:
        broker = brokers[at]
        places[broker] += 1
        if newest_us.get(broker, times_us[at]) - times_us[at] > conf.idle_s * 1_000_000:
            reasons[at] = "idle"
        elif places[broker] > conf.slots_per_broker:
            reasons[at] = "over_slots"
    return reasons


@dataclass(frozen=True, slots=True)
class _Brokers:
    """What a batch read of all brokers. The cluster is that of the newest line."""

    lines: int
    newest: datetime
    cluster_id: str | None
    newest_past_us: dict[Broker, int]

    @classmethod
    def from_rows(cls, rows: pa.Table) -> "_Brokers":
        """Of the rows of all tasks."""
        past = rows.filter(rows["newest_past"].is_valid()).group_by(_BROKER)
        newest_past = past.aggregate([("newest_past", "max")])
        times_us = newest_past["newest_past_max"].cast(LONG).to_pylist()
        newest = rows.sort_by([("event_time", "descending")]).slice(0, 1)
        newest_us = (newest["event_time"].cast(LONG).to_pylist() or [None])[0]
        return cls(
            pc.sum(rows["lines"]).as_py() or 0,
            _EPOCH_TIME + timedelta(microseconds=newest_us or 0),
            (newest["cluster_id"].to_pylist() or [None])[0],
            dict(zip(_brokers_of(newest_past), times_us, strict=True)),
        )


def _of_kind(rows: pa.Table, kind: str) -> pa.Table:
    return rows.filter(pc.equal(rows["kind"], kind))


def _brokers_of(rows: pa.Table) -> list[Broker]:
    columns = (rows[name].to_pylist() for name in _BROKER)
    return list(zip(*columns, strict=True))


def _counts(lines: int, sessions: Mapping[str | None, int]) -> list[Count]:
    table, state = FETCHES.name, FETCH_SESSIONS.name
    of_sessions = [
        Count("left_out" if reason else "out", rows, state, reason)
        for reason, rows in sessions.items()
    ]
    return [Count("in", lines, table), Count("out", lines, table), *of_sessions]
