"""Columns that several tables share."""

import pyarrow as pa

from quotaflow.schemas.table import BOOLEAN, INT, LONG, STRING, TIMESTAMP, Column

TAGS = pa.map_(STRING, STRING)

CLUSTER_ID = Column("cluster_id", STRING, "Kafka cluster id, as conf or the broker gives it")

SNAPSHOT_TIME = Column("event_time", TIMESTAMP, "when the snapshot was taken")
TOPIC_ID = Column("topic_id", STRING, "topic id as Kafka prints a Uuid")
TOPIC = Column("topic", STRING, "name of the topic")
PARTITION = Column("partition", INT, "number of the partition")
PRODUCER_ID = Column("producer_id", LONG, "producer id")

SOURCE = (
    Column("source_topic", STRING, "Kafka topic the row was read from"),
    Column("source_partition", INT, "partition of source_topic"),
    Column("source_offset", LONG, "offset in source_partition"),
    Column(
        "record_time",
        TIMESTAMP,
        "timestamp of the Kafka record: when it was shipped; null if the record has none",
    ),
)

SOURCE_LINE = Column(
    "source_line",
    INT,
    "number of the line in its record, from 0; null: the record is this line alone",
)
"""Behind SOURCE, where a record may have several lines."""

CLIENT = (
    Column("principal", STRING, "authenticated principal as Kafka prints it, e.g. User:alice"),
    Column("client_id", STRING, "client.id as the client gave it: untrusted text"),
    Column(
        "client_software_name",
        STRING,
        "client library (KIP-511), unknown until the client sends it",
    ),
    Column("client_software_version", STRING, "version of the client library (KIP-511)"),
    Column("client_address", STRING, "address the client connected from"),
    Column("client_port", INT, "port the client connected from"),
    Column("listener", STRING, "listener the request came in on"),
    Column("security_protocol", STRING, "security protocol of that listener"),
)


def is_removed(what: str) -> Column:
    """The column that makes a row of a snapshot say that something went."""
    return Column("is_removed", BOOLEAN, f"{what} was removed since the snapshot before")
