"""Records of kafka-python as Arrow, in the columns of Spark's Kafka source."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from quotaflow.schemas.table import LONG, TIMESTAMP
from quotaflow.udfs.request_log.records import FIRST_US, LAST_US, RECORDS


def of_records(records: Sequence[Any]) -> pa.RecordBatch:
    """Records as one batch of `records.RECORDS`."""
    # A producer may name any 64 bits as milliseconds; a time out of range is none.
    times_us = [record.timestamp * 1_000 for record in records]
    sane_us = [us if FIRST_US <= us <= LAST_US else None for us in times_us]
    times = pa.array(sane_us, LONG).cast(TIMESTAMP)
    columns = {
        "key": [record.key for record in records],
        "value": [record.value for record in records],
        "topic": [record.topic for record in records],
        "partition": [record.partition for record in records],
        "offset": [record.offset for record in records],
        "headers": [
            [{"key": key, "value": value} for key, value in record.headers or ()]
            for record in records
        ],
    }
    arrays = [
        times if field.name == "timestamp" else pa.array(columns[field.name], field.type)
        for field in RECORDS
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORDS)
