"""State files: whole after a power cut, and one line that says what to do where one is broken."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from quotaflow.pipelines.compute import result_state
from quotaflow.pipelines.errors import CheckpointError
from quotaflow.pipelines.streaming import identity
from quotaflow.pipelines.streaming.identity import TopicIdentity
from quotaflow.pipelines.warehouse import state_files

LOGS = TopicIdentity("c1", "logs", "t1")


def test_the_disk_has_the_content_before_the_name_and_the_name_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    sync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        steps.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        sync(descriptor)

    def replaced(self: Path, target: Path) -> Path:
        steps.append(f"{self.name} > {target.name}")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    file = tmp_path / "folder" / "state.json"
    state_files.replace(file, "1")
    assert file.read_text() == "1"
    assert steps == ["state.new", "state.new > state.json", "folder"]


def test_a_mount_that_cannot_sync_a_folder_keeps_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def only_files(descriptor: int) -> None:
        if Path(os.readlink(f"/proc/self/fd/{descriptor}")).is_dir():
            raise OSError("Invalid argument")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", only_files)
    state_files.replace(tmp_path / "state.json", "1")
    assert (tmp_path / "state.json").read_text() == "1"


def topic_of(checkpoint: Path) -> None:
    identity.check_topic(checkpoint, LOGS, accept_new=False)


def clusters_of(checkpoint: Path) -> object:
    return identity.cluster_ids(checkpoint.parent)


READERS = [
    (".results.json", result_state.load, "quotaflow rebuild TABLE --from TIME"),
    (".topic.json", topic_of, "write it again with: printf %s"),
    (".topic.json", clusters_of, "kafka.cluster_id"),
    (".start.json", identity.starting_offsets, "remove it: then the job reads its topic from"),
]


@pytest.mark.parametrize("content", ["", "{", "[1]", "7", "null", '{"a": 3}', "\x00" * 40])
@pytest.mark.parametrize(("suffix", "read", "remedy"), READERS)
def test_a_broken_file_is_an_error_that_says_what_to_do(
    suffix: str, read: Callable[[Path], object], remedy: str, content: str, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "job"
    assert read(checkpoint) in (None, {}, set(), "earliest")
    file = checkpoint.with_suffix(suffix)
    file.write_text(content)
    with pytest.raises(CheckpointError) as raised:
        read(checkpoint)
    line = str(raised.value)
    assert line.startswith(f"{file} is {'broken' if content else 'empty'}: ")
    assert remedy in line
    assert "\n" not in line


def test_the_printed_line_repairs_the_topic(tmp_path: Path) -> None:
    file = tmp_path / "job.topic.json"
    file.touch()
    with pytest.raises(CheckpointError) as raised:
        topic_of(tmp_path / "job")
    assert os.system(str(raised.value).split("with: ")[1]) == 0  # noqa: S605  the product prints it
    assert json.loads(file.read_text())["topic_id"] == LOGS.topic_id
    topic_of(tmp_path / "job")


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "job.results.json"
    file.mkdir()
    with pytest.raises(CheckpointError, match=r"cannot read .*job.results.json: Is a directory"):
        result_state.load(tmp_path / "job")
