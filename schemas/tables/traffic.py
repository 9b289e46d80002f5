"""Tables of what requests add up to: traffic per client and topic, and the names of topics."""

from quotaflow.schemas.columns import (
    CLUSTER_ID,
    EVENT_DATE,
    MINUTE,
    NAMED_TOPIC,
    NAMED_TOPIC_ID,
    TOPIC,
    TOPIC_ID,
)
from quotaflow.schemas.table import BOOLEAN, INT, LONG, STRING, Column, Table

TRAFFIC = Table(
    name="traffic",
    comment=(
        "Record bytes that clients produced and consumed, one row per minute, client, broker and "
        "topic; of what moved only, refused partitions and followers left out"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        MINUTE,
        Column("broker_id", INT, "broker that took or gave the bytes"),
        Column("principal", STRING, "principal, as Kafka prints it"),
        Column("client_id", STRING, "client.id as the client gave it: untrusted text"),
        Column("direction", STRING, "produced or consumed"),
        NAMED_TOPIC,
        NAMED_TOPIC_ID,
        Column(
            "client_rack",
            STRING,
            "client.rack of a consumer that sends it (KIP-392), else the rack of the client's "
            "address or client id by conf's racks; null: not known",
        ),
        Column("bytes", LONG, "record bytes, as compressed by the producer"),
        Column("is_rack_inferred", BOOLEAN, "client_rack is that of conf: the client sends none"),
        Column(
            "rack_source",
            STRING,
            "how client_rack is known: request (client.rack of a FETCH), address (conf's racks) or "
            "client_id (claimed by the client id, by conf's rack_patterns); null: it is not known, "
            "or the row is older",
        ),
        Column(
            "broker_rack",
            STRING,
            "broker.rack by the last snapshot by then, or by the first one after it",
        ),
        Column(
            "cross_rack_bytes",
            LONG,
            "bytes, where client_rack and broker_rack differ; null: one of them is not known",
        ),
    ),
    key=(
        "cluster_id",
        "event_time",
        "broker_id",
        "principal",
        "client_id",
        "direction",
        "topic",
        "topic_id",
        "client_rack",
        "is_rack_inferred",
    ),
    time="event_time",
    partitioning=("event_date",),
    area="quotas",
)

TOPIC_NAMES = Table(
    name="topic_names",
    comment=(
        "Which topic ids brokers sent clients for which topics, one row per minute and id (view "
        "topic_ids): METADATA and CREATE_TOPICS name topics by both, also those that came and went "
        "between two snapshots"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        MINUTE,
        TOPIC_ID,
        TOPIC,
        Column(
            "requests",
            LONG,
            "requests that have it; where topic_id is null those whose topics are not known, since "
            "their body was capped",
        ),
    ),
    key=("cluster_id", "event_time", "topic_id"),
    time="event_time",
    partitioning=("event_date",),
    area="cluster",
)
