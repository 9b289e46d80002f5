"""`fetch_sizes`: how much fetches return at once, and what bounds it (KIP-74)."""

import pyarrow as pa

from quotaflow.schemas.columns import CLIENT, CLUSTER_ID, EVENT_DATE, MINUTE
from quotaflow.schemas.table import DOUBLE, INT, LONG, STRING, Column, Table

LIMITERS = {
    "max_bytes": "answers of exactly the request's max_bytes",
    "broker_cap": "answers of exactly the broker's fetch.max.bytes, where max_bytes is more",
    "quota_window": "answers of exactly what consumer_byte_rate leaves: quota x the broker's "
    "windows but one",
    "partition_max_bytes": "answers in which a partition brought exactly its partition_max_bytes",
    "first_batch": "answers whose first batch alone is more than a limit: it is returned whole",
    "drained": "other answers with records: nothing more to read, or a segment of the log ended",
    "wait_timeout": "empty answers: nothing came within max_wait_ms",
    "throttled": "empty answers of a throttled client",
    "redirected": "empty answers that name a preferred replica (KIP-392)",
    "error": "answers with an error, and no records",
}
"""What bounds an answer to a fetch. The broker cuts reads exactly at a limit, so equality
shows which limit it was."""

OVERSIZED = pa.struct(
    [
        pa.field("bytes", LONG),
        pa.field("topic", STRING),
        pa.field("topic_id", STRING),
        pa.field("partition", INT),
        pa.field("fetch_offset", LONG),
    ]
)

FETCH_SIZES = Table(
    name="fetch_sizes",
    comment=(
        "How much fetches returned at once and what bounded it (KIP-74), one row per minute, "
        "client or follower, and broker"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        MINUTE,
        Column("broker_id", INT, "broker that was fetched from"),
        *CLIENT[:2],
        Column("replica_id", INT, "node id of a follower; null for consumers"),
        Column("fetches", LONG, "fetches answered"),
        Column("bytes", LONG, "record bytes they brought"),
        Column("max_response_bytes", LONG, "most record bytes in one answer"),
        Column(
            "response_sizes",
            pa.list_(LONG),
            "answers with records by size: the k-th, from 0, counts those of 2^k to 2^(k+1)-1 "
            "bytes; the last all that are more. Arrays of several rows add up",
        ),
        *(Column(f"{name}_fetches", LONG, what) for name, what in LIMITERS.items()),
        Column("max_bytes", LONG, "greatest limit requested for a whole answer"),
        Column(
            "partition_max_bytes", LONG, "greatest limit on a partition requested; null: not known"
        ),
        Column("min_bytes", LONG, "greatest min_bytes requested"),
        Column("max_wait_ms", LONG, "longest max_wait_ms requested"),
        Column("partitions", INT, "most partitions requested at once; null: not known"),
        Column(
            "bound_bytes",
            LONG,
            "most bytes of one answer: the lesser of max_bytes and the sum of partition_max_bytes "
            "over the partitions requested; null: the partitions of a fetch are not known. A first "
            "batch comes whole all the same",
        ),
        Column("filled_fetches", LONG, "answers that reached max_bytes"),
        Column("first_partitions", INT, "different partitions that came first in those"),
        Column("starved_fetches", LONG, "those of them without a partition that had data waiting"),
        Column("starved_partitions", INT, "partitions that had data waiting and got none"),
        Column(
            "max_starved_fetches",
            LONG,
            "times that the partition with the most such answers got none",
        ),
        Column(
            "fairness",
            DOUBLE,
            "Jain's index of bytes over the partitions that returned some or had data waiting: 1 "
            "all alike, 1/n one alone; null without any",
        ),
        Column("oversized_batches", LONG, "partitions that returned more than a limit"),
        Column("largest_oversized", pa.list_(OVERSIZED), "up to ten of those, the largest first"),
    ),
    key=("cluster_id", "event_time", "broker_id", "principal", "client_id", "replica_id"),
    time="event_time",
    partitioning=("event_date",),
    area="requests",
)
