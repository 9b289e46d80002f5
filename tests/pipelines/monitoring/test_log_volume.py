"""What capture measured is kept until it measures again."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quotaflow.pipelines.config import WarehouseSection
from quotaflow.pipelines.errors import CheckpointError, ConfigError
from quotaflow.pipelines.monitoring import log_volume
from quotaflow.pipelines.monitoring.log_volume import LogVolume

VOLUME = LogVolume("c1", datetime(2026, 11, 21, tzinfo=UTC), 30.0, {"1": 60}, {"1": 66_000})


def test_the_last_measurement_of_a_cluster_is_kept(tmp_path: Path) -> None:
    section = WarehouseSection(path=str(tmp_path / "warehouse"))
    assert log_volume.load(section, "c1") is None
    log_volume.save(section, replace(VOLUME, duration_s=10.0))
    log_volume.save(section, VOLUME)
    assert log_volume.load(section, "c1") == VOLUME
    assert (VOLUME.bytes_per_s, VOLUME.bytes_per_line) == (2_200, 1_100)
    assert log_volume.load(section, "another") is None
    assert replace(VOLUME, lines={}, bytes={}).bytes_per_line is None


@pytest.mark.parametrize("text", ["", "{}", '{"cluster_id": "c1", "duration_s": 0}', "[]"])
def test_a_broken_file_is_named(tmp_path: Path, text: str) -> None:
    section = WarehouseSection(path=str(tmp_path))
    log_volume.save(section, VOLUME)
    file = next(tmp_path.rglob("volume.json"))
    file.write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match="remove it"):
        log_volume.load(section, "c1")


def test_a_folder_that_is_a_file_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "warehouse").write_text("", encoding="utf-8")
    section = WarehouseSection(path=str(tmp_path / "warehouse"))
    with pytest.raises(ConfigError, match="cannot write"):
        log_volume.save(section, VOLUME)
