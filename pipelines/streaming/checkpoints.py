"""Checkpoints of queries, read as files without a JVM: how far each query is in its source."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quotaflow.pipelines.errors import CheckpointError
from quotaflow.pipelines.warehouse import state_files

_REMEDY = (
    "it has the id of the query. Remove it, and the next run says how to write it again from the "
    "tables"
)
_VERSION_AND_METADATA = 2
# The names of temporary files of Spark's CheckpointFileManager, and of their checksums.
_UNNAMED = re.compile(r"\.{1,2}\d+\.[0-9a-f-]{36}\.tmp(\.crc)?")


@dataclass(frozen=True, slots=True)
class DeltaOffset:
    """Where a batch ends in a Delta table: before the version that is read next.

    `is_whole`: all versions before it are read. It is false while a query reads the version that
    the table had when the query started.
    """

    table_id: str
    version: int
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A query's newest batch, and where that ends in its only source.

    `kafka` has the next offset by topic and partition; None for another source.
    """

    job: str
    batch_id: int
    kafka: Mapping[tuple[str, int], int] | None
    delta: DeltaOffset | None
    topic: Mapping[str, str] | None


def load(folder: Path) -> dict[str, Checkpoint]:
    """Every checkpoint in a folder whose query has started a batch, by its job."""
    if not folder.is_dir():
        return {}
    checkpoints = (
        _load(path) for path in sorted(folder.iterdir()) if (path / "metadata").is_file()
    )
    return {checkpoint.job: checkpoint for checkpoint in checkpoints if checkpoint.batch_id >= 0}


def committed(checkpoint: Path) -> Checkpoint | None:
    """A checkpoint as of its newest committed batch; None before the first."""
    commits = checkpoint / "commits"
    names = [path.name for path in commits.iterdir()] if commits.is_dir() else []
    done = max((int(name) for name in names if name.isdecimal()), default=None)
    return None if done is None else _at(checkpoint, done)


def query_id(checkpoint: Path) -> str:
    """The id that Spark gave the query with its checkpoint. A new checkpoint has another id.

    Raises CheckpointError if the file that has it is missing or broken.
    """
    file = checkpoint / "metadata"
    if query := state_files.load(file, lambda text: str(json.loads(text)["id"]), _REMEDY):
        return query
    raise CheckpointError(f"{file} is missing: {_REMEDY}")


def newest_batch(checkpoint: Path) -> int:
    """The number of the last micro-batch that started, committed or not; -1 before the first."""
    offsets = checkpoint / "offsets"
    names = [path.name for path in offsets.iterdir()] if offsets.is_dir() else []
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def drop_unnamed(checkpoint: Path) -> None:
    """Remove temporary files of a run that died while it recorded its first batch.

    With such a file Spark refuses to start the query, now and later: its error is named
    STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY.
    """
    offsets = checkpoint / "offsets"
    if newest_batch(checkpoint) < 0 and offsets.is_dir():
        for path in offsets.iterdir():
            if _UNNAMED.fullmatch(path.name):
                path.unlink()


def _load(path: Path) -> Checkpoint:
    return _at(path, newest_batch(path))


def _at(path: Path, batch_id: int) -> Checkpoint:
    source = _source(path / "offsets" / str(batch_id)) if batch_id >= 0 else None
    return Checkpoint(
        job=path.name,
        batch_id=batch_id,
        kafka=_kafka(source),
        delta=_delta(source),
        topic=_topic(path.with_suffix(".topic.json")),
    )


def _source(file: Path) -> Any:
    """The offset of a query's only source; None if the file has a form that is not known."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()[_VERSION_AND_METADATA:]
        return json.loads(lines[0]) if len(lines) == 1 else None
    except (OSError, ValueError):
        return None


def _kafka(source: Any) -> dict[tuple[str, int], int] | None:
    if not isinstance(source, dict):
        return None
    if not all(isinstance(partitions, dict) for partitions in source.values()):
        return None
    try:
        return {
            (topic, int(partition)): int(offset)
            for topic, partitions in source.items()
            for partition, offset in partitions.items()
        }
    except (ValueError, TypeError):
        return None


def _delta(source: Any) -> DeltaOffset | None:
    if not isinstance(source, dict) or "reservoirVersion" not in source:
        return None
    # Files of a version have an index from 0. With a lower index in the offset, no file of this
    # version is read yet, and all versions before it are.
    is_whole = not source.get("isStartingVersion", False)
    try:
        return DeltaOffset(str(source["reservoirId"]), int(source["reservoirVersion"]), is_whole)
    except (KeyError, ValueError, TypeError):
        return None


def _topic(file: Path) -> dict[str, str] | None:
    try:
        identity: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return identity if isinstance(identity, dict) else None
