"""The position of a query in a topic, from its checkpoint, and its micro-batch that was cut off."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from quotaflow.pipelines.streaming.checkpoints import newest_batch


@dataclass(frozen=True, slots=True)
class TopicPosition:
    """Where a query goes on: the next offset of each partition, and when that was planned (ms).

    `cut_off_ends` are the offsets at which the micro-batch was to end that started and was not
    committed. None if the last micro-batch was committed.
    """

    offsets: Mapping[int, int]
    planned_ms: int = 0
    cut_off_ends: Mapping[int, int] | None = None


def read_position(checkpoint: Path, topic: str) -> TopicPosition | None:
    """How far a checkpoint's query has read a topic.

    None before its first micro-batch, and if the files have a form that is not known.
    """
    try:
        return _reached(checkpoint, topic)
    except (OSError, ValueError, KeyError):
        return None


def _reached(checkpoint: Path, topic: str) -> TopicPosition | None:
    newest = newest_batch(checkpoint)
    if newest < 0:
        return None
    ends, planned_ms = _planned(checkpoint / "offsets" / str(newest), topic)
    if (checkpoint / "commits" / str(newest)).exists():
        return TopicPosition(ends, planned_ms)
    if newest:
        begins, planned_ms = _planned(checkpoint / "offsets" / str(newest - 1), topic)
    else:
        begins = _offsets((checkpoint / "sources" / "0" / "0").read_bytes().decode(), topic)
    return TopicPosition(begins, planned_ms, ends)


def _planned(file: Path, topic: str) -> tuple[Mapping[int, int], int]:
    """The end offsets in one file of Spark's offset log, and when it was written (ms)."""
    text = file.read_text(encoding="utf-8")
    _version, metadata, *_sources = text.splitlines()
    return _offsets(text, topic), int(json.loads(metadata)["batchTimestampMs"])


def _offsets(text: str, topic: str) -> Mapping[int, int]:
    """The offsets in a line such as {"topic":{"0":12}}; metadata may have the topic's name too."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    (by_partition,) = [line[topic] for line in lines if topic in line][-1:]
    return {int(partition): int(offset) for partition, offset in by_partition.items()}
