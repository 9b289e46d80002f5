"""Tables of the pipeline's own working: what it could not read, and what it did."""

from quotaflow.schemas.columns import CLUSTER_ID, SOURCE
from quotaflow.schemas.table import BINARY, LONG, STRING, TIMESTAMP, Column, Table

QUARANTINE = Table(
    name="quarantine",
    comment="One row per record or payload that could not be read, with the reason",
    columns=(
        CLUSTER_ID,
        Column("event_time", TIMESTAMP, "time of the Kafka record"),
        Column("target", STRING, "table the row was meant for"),
        Column("reason", STRING, "why it could not be read: a code"),
        Column("detail", STRING, "what was seen, bounded"),
        Column("size_bytes", LONG, "size of the record's value"),
        Column("head", BINARY, "the first 4 KiB of the value; null where it may hold credentials"),
        *SOURCE,
    ),
    key=("cluster_id", "target", "source_topic", "source_partition", "source_offset"),
    time="event_time",
    clustering=("event_time", "reason"),
)

PIPELINE_PROGRESS = Table(
    name="pipeline_progress",
    comment="Rows in, out and left out, by query and micro-batch: nothing is dropped silently",
    columns=(
        CLUSTER_ID,
        Column("event_time", TIMESTAMP, "greatest record or event time in the batch"),
        Column("job", STRING, "job that ran the batch"),
        Column("query_id", STRING, "id of the streaming query, from its checkpoint"),
        Column("batch_id", LONG, "number of the micro-batch"),
        Column("target", STRING, "table the rows went to; null for rows left out"),
        Column("outcome", STRING, "in, out, left_out, quarantined, late or failed"),
        Column("reason", STRING, "why rows were left out, quarantined, late or not computed"),
        Column("row_count", LONG, "rows"),
    ),
    key=("query_id", "batch_id", "target", "outcome", "reason"),
    time="event_time",
    clustering=("event_time", "job"),
)
