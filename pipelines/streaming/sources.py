"""The only readStream, of Kafka topics and Delta tables; and a topic's records of a time range."""

from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quotaflow.pipelines.config import KafkaSection, ResultsSection, logins, secrets
from quotaflow.pipelines.config.kafka import SERVICE_CREDENTIAL
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.warehouse import store_frames
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NEWEST_CLUSTER = "newest_cluster"
"""Observed metric of queries that read a table: the cluster_id of the newest row of a batch."""

RECORDS_PER_TASK = 50_000
"""The most records of a topic that one task reads: seconds of work, so that all cores are used."""

# Spark sets these itself and refuses them from a user.
_RESERVED = {
    "auto.offset.reset",
    "enable.auto.commit",
    "group.id",
    "interceptor.classes",
    "key.deserializer",
    "key.serializer",
    "value.deserializer",
    "value.serializer",
}


def read_topic(
    spark: "SparkSession",
    kafka: KafkaSection,
    topic: str,
    max_offsets: int,
    starting_offsets: str = "earliest",
) -> "DataFrame":
    """Records of a topic with headers, at most `max_offsets` per micro-batch.

    `starting_offsets` is used by a query without a checkpoint.
    """
    return (
        spark.readStream.format("kafka")
        .options(**_reading(kafka, topic))
        .option("startingOffsets", starting_offsets)
        .option("maxOffsetsPerTrigger", max_offsets)
        .load()
    )


def read_topic_between(
    spark: "SparkSession", kafka: KafkaSection, topic: str, time_range: TimeRange
) -> "DataFrame":
    """Records of a topic with Kafka timestamps in a time range.

    Two adjacent time ranges lose no record and repeat none: one ends at the offsets where the other
    starts.
    """
    reader = (
        spark.read.format("kafka")
        .options(**_reading(kafka, topic))
        .option("startingTimestamp", _millis(time_range.start))
        .option("startingOffsetsByTimestampStrategy", "latest")
    )
    if time_range.end is not None:
        reader = reader.option("endingTimestamp", _millis(time_range.end))
    return reader.load()


def _reading(kafka: KafkaSection, topic: str) -> dict[str, str]:
    """Options of every reader of a topic."""
    return kafka_options(kafka) | {
        "subscribe": topic,
        "failOnDataLoss": "true",
        "includeHeaders": "true",
        "maxRecordsPerPartition": str(RECORDS_PER_TASK),
    }


def _millis(time: datetime) -> str:
    return str(round(time.timestamp() * 1_000))


def read_table(
    spark: "SparkSession",
    bounds: ResultsSection,
    warehouse: Warehouse,
    table: str,
    columns: Collection[str] = (),
) -> "DataFrame":
    """Rows appended to a table, bounded per micro-batch; rewrites by upkeep are skipped.

    `columns` are those that the query needs, all without them: of an object store no others are
    read, and a row has its file, too.

    The query observes the cluster of the newest row as the metric NEWEST_CLUSTER.
    """
    if warehouse.conf.is_store:
        names = [*(columns or TABLES[table].column_names), "cluster_id", "event_time", "file"]
        names, max_bytes = list(dict.fromkeys(names)), bounds.max_bytes_per_trigger
        kind = store_frames.stream_format(spark, warehouse.place, table, names, max_bytes)
        return _observed(spark.readStream.format(kind).load())
    reader = (
        spark.readStream.format("delta")
        .option("skipChangeCommits", "true")
        .option("maxBytesPerTrigger", bounds.max_bytes_per_trigger)
    )
    if warehouse.conf.catalog_schema:
        rows = reader.table(warehouse.target(table))
    else:
        rows = reader.load(str(warehouse.folder(table)))
    return _observed(rows)


def _observed(rows: "DataFrame") -> "DataFrame":
    return rows.observe(NEWEST_CLUSTER, F.max_by("cluster_id", "event_time").alias("cluster_id"))


def kafka_options(kafka: KafkaSection) -> dict[str, str]:
    """Kafka client properties as options of Spark's Kafka source, secrets looked up.

    Pass them to the reader only, never to Spark's conf, which its UI and event log show.
    """
    reserved = sorted(_RESERVED & kafka.properties.keys())
    if reserved:
        raise ConfigError(
            f"kafka.properties.{reserved[0]} is set by Spark's Kafka source: leave it out"
        )
    # Otherwise our own consumers push telemetry into the topic they read.
    properties = {"enable.metrics.push": "false"} | secrets.resolve(kafka.properties)
    properties = logins.shaded(properties, kafka.login_module_prefix)
    options = {f"kafka.{key}": value for key, value in properties.items()}
    name = kafka.service_credential
    return options | ({SERVICE_CREDENTIAL: name} if name else {})
