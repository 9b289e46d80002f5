"""Folders of tables that a job makes are its user's alone; those that exist stay as they are."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.warehouse import private_folder
from quotaflow.pipelines.warehouse.warehouse import Warehouse


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def test_the_default_home_is_its_users_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("QUOTAFLOW_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with Warehouse(config.WarehouseSection()).lock():
        assert mode(tmp_path / ".quotaflow") == mode(tmp_path / ".quotaflow/warehouse") == 0o700


def test_a_named_folder_is_private_too_and_one_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    with Warehouse(config.WarehouseSection(path=str(shared / "tables"))).lock():
        assert (mode(shared), mode(shared / "tables")) == (0o755, 0o700)
    with Warehouse(config.WarehouseSection(path=str(shared))).lock():
        assert mode(shared) == 0o755


@pytest.mark.parametrize(
    ("above", "own", "is_open"),
    [
        (0o755, 0o755, True),
        (0o755, 0o711, True),
        (0o755, 0o750, False),
        (0o755, 0o700, False),
        (0o700, 0o755, False),
    ],
)
def test_a_folder_is_open_where_each_folder_above_lets_others_in(
    above: int, own: int, is_open: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "above" / "own"
    folder.mkdir(parents=True)
    folder.chmod(own)
    folder.parent.chmod(above)
    monkeypatch.setattr(Path, "parents", property(lambda path: (path.parent,)))
    assert private_folder.is_open_to_others(folder) is is_open
