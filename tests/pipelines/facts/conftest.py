"""Records as Spark's Kafka source has them."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import pytest
from pyspark.sql import DataFrame, SparkSession

RECORD_TIME = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
RECORDS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)
Headers = dict[str, str]
# A value, or a value with the headers of its record.
Records = Iterable[bytes | tuple[bytes, Headers]]


@pytest.fixture(scope="session")
def topic(spark: SparkSession) -> Callable[..., DataFrame]:
    """A frame of records, the offset being the place in the list."""

    def make(records: Records, name: str = "logs", partition: int = 0) -> DataFrame:
        rows = []
        for offset, record in enumerate(records):
            value, given = record if isinstance(record, tuple) else (record, {"broker_id": "7"})
            headers = [(key, text.encode()) for key, text in given.items()]
            rows.append((None, value, name, partition, offset, RECORD_TIME, headers))
        return spark.createDataFrame(rows, RECORDS)

    return make
