"""The newest records of topics through kafka-python, to show; nothing is stored."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka import errors as kafka_errors

from quotaflow.pipelines.errors import KafkaError
from quotaflow.pipelines.kafka import admin, rights

Records = list[Any]
"""kafka-python's ConsumerRecord: topic, partition, offset, timestamp, key, value, headers."""

_WAIT_MS = 500
_RECORDS_AT_ONCE = 500


@contextmanager
def follow(
    properties: Mapping[str, str], partitions: Mapping[str, int]
) -> Iterator[Callable[[], Records]]:
    """A function that returns new records of topics from now on, and waits half a second for some.

    `partitions` is the number of partitions by topic. Raises KafkaError if a topic cannot be read.
    """
    with _partition_errors(partitions), closing(KafkaConsumer(**_options(properties))) as consumer:
        assigned = [TopicPartition(topic, p) for topic, n in partitions.items() for p in range(n)]
        consumer.assign(assigned)
        for partition, end in consumer.end_offsets(assigned).items():
            consumer.seek(partition, end)

        def poll() -> Records:
            by_partition = consumer.poll(timeout_ms=_WAIT_MS, max_records=_RECORDS_AT_ONCE)
            return [record for records in by_partition.values() for record in records]

        yield poll


def newest(
    properties: Mapping[str, str], partitions: Mapping[str, int], most: int, within_s: float
) -> Records:
    """The newest records of topics: at most `most` of each partition, read within `within_s`.

    Raises KafkaError if a topic cannot be read.
    """
    deadline = time.monotonic() + within_s
    with _partition_errors(partitions), closing(KafkaConsumer(**_options(properties))) as consumer:
        assigned = [TopicPartition(topic, p) for topic, n in partitions.items() for p in range(n)]
        consumer.assign(assigned)
        begins, ends = consumer.beginning_offsets(assigned), consumer.end_offsets(assigned)
        for each in assigned:
            consumer.seek(each, max(begins[each], ends[each] - most))
        newest_records: Records = []
        left = {each for each in assigned if ends[each] > begins[each]}
        while left and time.monotonic() < deadline:
            for each, records in consumer.poll(timeout_ms=_WAIT_MS).items():
                newest_records += records
                if records[-1].offset >= ends[each] - 1:
                    left.discard(each)
        return newest_records


def _options(properties: Mapping[str, str]) -> dict[str, Any]:
    return admin.options(properties) | {
        "client_id": "quotaflow-troubleshoot",
        "group_id": None,
        "enable_auto_commit": False,
        "allow_auto_create_topics": False,
    }


@contextmanager
def _partition_errors(topics: Mapping[str, int]) -> Iterator[None]:
    names = ", ".join(topics)
    try:
        yield
    except kafka_errors.UnsupportedCodecError as error:
        raise KafkaError(
            f"records of {names} cannot be decompressed ({error}): "
            "pip install zstandard lz4 python-snappy"
        ) from None
    except kafka_errors.KafkaError as error:
        needs = rights.hint("troubleshoot", str(error))
        raise KafkaError(f"{names} cannot be read: {error}{needs}") from None
