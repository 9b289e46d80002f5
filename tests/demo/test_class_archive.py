"""JVMs of the demo use an archive of their own class path alone, and need none."""

import os
from pathlib import Path

import pytest

from quotaflow.demo import class_archive


@pytest.fixture
def class_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "quotaflow" / "class-archives").mkdir(parents=True)
    files = [tmp_path / name for name in ("a.jar", "b.jar")]
    for file in files:
        file.touch()
    return files


def test_an_archive_is_of_one_class_path_and_of_its_files_as_they_are(
    class_path: list[Path], tmp_path: Path
) -> None:
    assert class_archive.flags(class_path) == []
    archive = class_archive.archive_of(class_path)
    archive.touch()
    assert f"-XX:SharedArchiveFile={archive}" in class_archive.flags(class_path)
    assert class_archive.flags(class_path[::-1]) == []
    os.utime(tmp_path / "a.jar", (1, 1))
    assert class_archive.flags(class_path) == []
