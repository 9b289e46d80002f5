"""How much request log brokers write: what `capture` measured last, beside the checkpoints."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from quotaflow.pipelines.config import WarehouseSection
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.warehouse import state_files
from quotaflow.pipelines.warehouse.warehouse import Warehouse

BYTES_PER_LINE = 1_100
"""For a usual mix of APIs: broker/README.md has the sizes by API."""

_FOLDER, _NAME = "capture", "volume.json"


@dataclass(frozen=True, slots=True)
class LogVolume:
    """Lines and bytes by broker that reached the topic in `duration_s`, until `ended_at`.

    Brokers without a line are not in it. Sizes are those of records before compression.
    """

    cluster_id: str
    ended_at: datetime
    duration_s: float
    lines: Mapping[str, int]
    bytes: Mapping[str, int]

    @property
    def bytes_per_s(self) -> float:
        """Of all brokers that wrote lines, together."""
        return sum(self.bytes.values()) / self.duration_s

    @property
    def bytes_per_line(self) -> float | None:
        """Mean size of a line; None without one."""
        lines = sum(self.lines.values())
        return sum(self.bytes.values()) / lines if lines else None


def save(section: WarehouseSection, volume: LogVolume) -> None:
    """Keep a measurement in place of the one before. Raises ConfigError if it cannot be written."""
    file = Warehouse(section).checkpoint(_FOLDER) / _NAME
    content = {
        "cluster_id": volume.cluster_id,
        "ended_at": volume.ended_at.isoformat(),
        "duration_s": volume.duration_s,
        "lines": dict(volume.lines),
        "bytes": dict(volume.bytes),
    }
    try:
        state_files.replace(file, json.dumps(content))
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}") from None


def load(section: WarehouseSection, cluster_id: str) -> LogVolume | None:
    """The last measurement of this cluster; None if there is none.

    Raises CheckpointError if the file cannot be read.
    """
    file = Warehouse(section).checkpoint(_FOLDER) / _NAME
    volume = state_files.load(file, _parsed, "remove it, and run `quotaflow capture --yes` again")
    return volume if volume is not None and volume.cluster_id == cluster_id else None


def _parsed(text: str) -> LogVolume:
    content = json.loads(text)
    volume = LogVolume(
        str(content["cluster_id"]),
        datetime.fromisoformat(content["ended_at"]),
        float(content["duration_s"]),
        {str(broker): int(lines) for broker, lines in content["lines"].items()},
        {str(broker): int(size) for broker, size in content["bytes"].items()},
    )
    if volume.duration_s <= 0 or volume.ended_at.tzinfo is None:
        raise ValueError(text)
    return volume
