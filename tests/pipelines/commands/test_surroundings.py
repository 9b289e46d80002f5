"""What a process may lack: open streams, address space, a file system with a size."""

import resource
import shutil
import subprocess
from collections import namedtuple
from functools import partial
from pathlib import Path

import pytest

from quotaflow.pipelines import __main__ as commands
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.monitoring import health

from ...own_process import quotaflow

_MIB = 1024**2
_Usage = namedtuple("_Usage", "total used free")


def ended(line: str, tmp_path: Path) -> "subprocess.CompletedProcess[str]":
    """What became of a command whose streams this shell line changes; `$@` is the command."""
    words = ["bash", "-c", line, "-", *quotaflow("conf", "check")]
    home = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    return subprocess.run(words, capture_output=True, text=True, check=False, env=home, timeout=120)


def test_a_closed_output_is_noted_and_the_command_goes_on(tmp_path: Path) -> None:
    process = ended('"$@" >&-', tmp_path)
    assert process.returncode == 0
    assert process.stderr == "the standard output is closed: nothing is printed there\n"


def test_without_any_stream_the_exit_code_is_right(tmp_path: Path) -> None:
    assert ended('"$@" <&- >&- 2>&-', tmp_path).returncode == 0


def test_a_full_output_is_named_and_not_the_tables(tmp_path: Path) -> None:
    process = ended('"$@" >/dev/full', tmp_path)
    assert process.returncode == 1
    assert process.stderr == (
        "error: cannot write to the standard output: No space left on device\n"
    )


@pytest.mark.parametrize("mib", [512, 1_500])
def test_a_small_address_space_is_one_error(mib: int, tmp_path: Path) -> None:
    limit = partial(resource.setrlimit, resource.RLIMIT_AS, (mib * _MIB, mib * _MIB))
    words = quotaflow("sql", "SELECT 1", "--set", f"warehouse.path={tmp_path}")
    process = subprocess.run(
        words, capture_output=True, text=True, check=False, preexec_fn=limit, timeout=120
    )
    assert process.returncode == 1
    assert process.stderr.startswith(f"error: this process may have {mib:,} MiB of address space")
    assert process.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("can't start new thread"),
        ImportError("x.so: failed to map segment from shared object"),
        OSError(12, "Cannot allocate memory"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_want_of_memory_is_one_error(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr(commands, "_done", fail)
    assert commands.execute(["status"]) == 1
    assert "allow this process more memory" in capsys.readouterr().err


def test_another_error_of_the_runtime_is_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise RuntimeError("other")

    monkeypatch.setattr(commands, "_done", fail)
    with pytest.raises(RuntimeError):
        commands.execute(["status"])


def test_a_file_system_without_a_size_has_no_free_share(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: _Usage(0, 0, 0))
    conf = Conf.model_validate({"warehouse": {"path": str(tmp_path)}})
    assert health.free_shares(conf) == {}
