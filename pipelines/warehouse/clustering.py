"""Removes the clustering of a folder's table, in place: delta-rs cannot write a table that has it.

Delta drops no such feature (DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE). Without clustering columns
the feature means nothing, so a commit may set the protocol back to one that all clients write. The
table keeps its id, so running queries continue from their checkpoints.
"""

import json
import os
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import SparkSession

_OF_CLUSTERING = {"clustering", "domainMetadata"}
_OF_VERSION_2 = {"appendOnly", "invariants"}
_PLAIN = {"minReaderVersion": 1, "minWriterVersion": 2}
"""The protocol that includes appendOnly and invariants, and that every client writes."""


def is_clustered(live: "DeltaTable") -> bool:
    """Whether the table has the feature, and no further one that would be lost without it."""
    features = set(live.protocol().writer_features or ())
    return "clustering" in features and features <= _OF_CLUSTERING | _OF_VERSION_2


def is_plain(live: "DeltaTable") -> bool:
    """Whether delta-rs can write the table: it has no feature beyond those of version 2.

    Versions 3 to 6 have features that are not listed, such as constraints.
    """
    protocol = live.protocol()
    if protocol.writer_features is None:
        return int(protocol.min_writer_version) <= _PLAIN["minWriterVersion"]
    return set(protocol.writer_features) <= _OF_VERSION_2


def remove(spark: "SparkSession", target: str, folder: Path) -> None:
    """Remove the clustering of a table that `is_clustered`. The caller has the warehouse's lock.

    A second run, also after a crash between the two commits, has the same result.
    """
    from deltalake import DeltaTable  # noqa: PLC0415  --help need not wait for it

    spark.sql(f"ALTER TABLE {target} CLUSTER BY NONE")
    version = DeltaTable(folder).version() + 1
    actions = [{"commitInfo": _commit_info()}, {"protocol": _PLAIN}]
    text = "".join(json.dumps(action) + "\n" for action in actions)
    _commit(folder / "_delta_log" / f"{version:020d}.json", text)


def _commit_info() -> dict[str, object]:
    return {
        "timestamp": time.time_ns() // 1_000_000,
        "operation": "UPGRADE PROTOCOL",
        "operationParameters": {"newProtocol": json.dumps(_PLAIN)},
        "engineInfo": "quotaflow",
    }


def _commit(path: Path, text: str) -> None:
    """Create a file of the log whole, or fail if this version exists."""
    fresh = path.with_name(f".{path.name}.{uuid.uuid4()}.tmp")
    try:
        with fresh.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
