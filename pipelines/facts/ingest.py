"""The ingest queries: each reads a topic once per micro-batch and fills all its tables."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.facts import duplicates
from quotaflow.pipelines.spark.caching import cached
from quotaflow.pipelines.streaming.sinks import Batch, Count
from quotaflow.pipelines.warehouse.known_brokers import known_brokers
from quotaflow.pipelines.warehouse.readers import reader_of
from quotaflow.schemas.table import Table, sql_columns
from quotaflow.schemas.tables.declared import (
    QUARANTINE,
    REQUESTS,
    TELEMETRY_PUSHES,
    TELEMETRY_SUBSCRIPTIONS,
)
from quotaflow.udfs.facts import task, telemetry_pushes
from quotaflow.udfs.facts.facts import FactSource
from quotaflow.udfs.facts.receiver import PushLog, ReadPushes
from quotaflow.udfs.facts.requests import RequestLog
from quotaflow.udfs.request_log.columns import DUPLICATE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FILES, _PACKED = sql_columns(task.FILES), sql_columns(task.PACKED)


@dataclass(frozen=True, slots=True)
class Ingest:
    """Appends what tasks make of the records of a topic.

    `source` goes to workers; it has the key of pseudonyms, which is looked up beside the session,
    because batches may run without access to secrets.
    """

    source: FactSource
    cluster_id: str
    tables: tuple[Table, ...]

    def write(self, records: "DataFrame", batch: Batch) -> None:
        """Append rows to each table, once, and report what became of every record."""
        source = self._prepared(records, batch)
        if batch.takes_files:
            self._write_files(source, records, batch)
        else:
            self._write_rows(source, records, batch)

    def _prepared(self, records: "DataFrame", batch: Batch) -> FactSource:
        """The source, with what tables say now: tasks read none.

        A replay may know a broker that the first try did not. It appends to the tables that lack
        this batch, so each has its rows once.
        """
        if not isinstance(self.source, RequestLog):
            return self.source
        tables = reader_of(batch.warehouse, lambda: records.sparkSession)
        return self.source.with_brokers(known_brokers(tables, self.cluster_id))

    def _write_files(self, source: FactSource, records: "DataFrame", batch: Batch) -> None:
        """Tasks write the tables' files; the driver commits all files of a table at once."""
        targets = [batch.target(table) for table in self.tables]
        written = records.mapInArrow(task.to_files(source, targets), _FILES).toArrow()
        rows = written.to_pylist()
        files = {
            table: [row for row in rows if row["path"] and row["table"] == table.name]
            for table in self.tables
        }
        removed = _without_duplicates(files, batch)
        for table in self.tables:
            if files[table]:
                batch.append_files(lambda: records.sparkSession, files[table], table)
        self._report(records, batch, rows, removed)

    def _write_rows(self, source: FactSource, records: "DataFrame", batch: Batch) -> None:
        """Tasks return rows, and Spark writes them: in a catalog only Spark may."""
        with cached(records.mapInArrow(task.to_rows(source), _PACKED)) as packed:
            rows = packed.drop("stream").toArrow().to_pylist()
            filled = {row["table"] for row in rows if not row["outcome"]}
            frames = {
                table: _unpacked(packed, table) for table in self.tables if table.name in filled
            }
            removed = _without_duplicate_rows(frames, batch)
            for table, frame in frames.items():
                batch.append(frame, table)
        self._report(records, batch, rows, removed)

    def _report(
        self,
        records: "DataFrame",
        batch: Batch,
        rows: Iterable[Mapping[str, Any]],
        removed: Mapping[str, int],
    ) -> None:
        counted = Counter[tuple[str, str | None, str | None]]()
        newest = None
        for row in rows:
            if row["outcome"]:
                counted[row["outcome"], row["table"], row["reason"]] += row["rows"]
                newest = max(filter(None, (newest, row["newest"])), default=None)
        for table, number in removed.items():
            counted["out", table, None] -= number
        counted["left_out", REQUESTS.name, DUPLICATE] += removed.get(REQUESTS.name, 0)
        if counted["in", None, None]:
            counts = [
                Count(outcome, n, target, reason)
                for (outcome, target, reason), n in counted.items()
            ]
            time = newest or datetime.now(UTC)
            batch.report(lambda: records.sparkSession, counts, self.cluster_id, time)


def _without_duplicates(files: dict[Table, list[Any]], batch: Batch) -> Mapping[str, int]:
    """Take what repeats requests out of new files, in place. Returns removed rows by table.

    What cannot be read stays in quarantine each time it comes.
    """
    if not files.get(REQUESTS):
        return {}
    place, removed = batch.warehouse.place, Counter[str]()
    repeated = duplicates.in_files(place, files[REQUESTS])
    if not repeated.num_rows:
        return {}
    for table in files.keys() - {QUARANTINE}:
        made = list[Any]()
        for file in files[table]:
            kept = duplicates.rewritten(batch.target(table), file, table, repeated, place)
            removed[table.name] += file["rows"] - (kept["rows"] if kept else 0)
            made += [kept] if kept else []
        files[table] = made
    return removed


def _without_duplicate_rows(frames: "dict[Table, DataFrame]", batch: Batch) -> Mapping[str, int]:
    """As `_without_duplicates`, for rows that Spark writes."""
    if REQUESTS not in frames:
        return {}
    arrived, removed = frames[REQUESTS], Counter[str]()
    stored = batch.warehouse.read(arrived.sparkSession, REQUESTS.name)
    repeated = duplicates.in_frames(arrived, stored)
    if not repeated.num_rows:
        return {}
    for table in frames.keys() - {QUARANTINE}:
        others = duplicates.without(frames[table], repeated)
        removed[table.name] = frames[table].count() - others.count()
        frames[table] = others
    return removed


def _unpacked(packed: "DataFrame", table: Table) -> "DataFrame":
    streams = packed.where(F.col("outcome").isNull() & (F.col("table") == table.name))
    return streams.select("stream").mapInArrow(task.unpacked, table.sql_schema)


def of_request_log(conf: Conf, cluster_id: str) -> Ingest:
    """Request-log topic -> requests, telemetry_pushes, telemetry_subscriptions, quarantine."""
    source = RequestLog(
        cluster_id, conf.ingest.line_options, conf.payloads.limits, conf.privacy.pseudonyms()
    )
    tables = (REQUESTS, TELEMETRY_SUBSCRIPTIONS, TELEMETRY_PUSHES, QUARANTINE)
    return Ingest(source, cluster_id, tables)


def of_receiver(conf: Conf, cluster_id: str) -> Ingest:
    """Topic of broker/TelemetryReceiver -> telemetry_pushes, quarantine."""
    return _of_pushes(conf, cluster_id, telemetry_pushes.from_receiver)


def of_collector(conf: Conf, cluster_id: str) -> Ingest:
    """Topic of a Collector's Kafka exporter -> telemetry_pushes, quarantine."""
    return _of_pushes(conf, cluster_id, telemetry_pushes.from_collector)


INGESTS: Mapping[str, Callable[[Conf, str], Ingest]] = {
    "ingest_request_log": of_request_log,
    "ingest_receiver": of_receiver,
    "ingest_otlp": of_collector,
}
"""Job -> what it does with a batch of records, by conf and cluster id."""


def _of_pushes(conf: Conf, cluster_id: str, unopened: ReadPushes) -> Ingest:
    source = PushLog(
        cluster_id,
        unopened,
        conf.ingest.max_line_bytes,
        conf.payloads.limits,
        conf.privacy.pseudonyms(),
    )
    return Ingest(source, cluster_id, (TELEMETRY_PUSHES, QUARANTINE))
