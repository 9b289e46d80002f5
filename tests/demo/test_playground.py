"""The demo that goes on ends all that it started by one Ctrl-C."""

import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

import pytest

from quotaflow.demo import playground
from quotaflow.demo.cluster import LocalCluster

STARTS_S, ENDS_S = 60.0, 12.0


class NoCluster:
    """In place of a cluster: nobody answers there."""

    bootstrap_servers = "127.0.0.1:1"
    folder = Path("nowhere")


def test_one_ctrl_c_ends_jobs_and_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    processes: list[subprocess.Popen[bytes]] = []
    start = playground._command

    @contextmanager
    def started(*arguments: Any) -> Iterator["subprocess.Popen[bytes]"]:
        with start(*arguments) as process:
            processes.append(process)
            yield process

    monkeypatch.setattr(playground, "_command", started)
    monkeypatch.setattr(playground, "_clients", lambda _: nullcontext({}))
    conf_file = tmp_path / "conf.yaml"
    conf_file.write_text(
        f"kafka:\n  properties:\n    bootstrap.servers: {NoCluster.bootstrap_servers}\n"
        f"warehouse:\n  path: {tmp_path / 'warehouse'}\n",
        encoding="utf-8",
    )
    printed: list[str] = []
    pressed: list[float] = []

    def press_when_pages_are_served() -> None:
        deadline_s = time.monotonic() + STARTS_S
        while time.monotonic() < deadline_s and not is_serving(printed):
            time.sleep(0.2)
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    user = threading.Thread(target=press_when_pages_are_served)
    user.start()
    playground.play(cast(LocalCluster, NoCluster()), 1, conf_file, printed.append)
    user.join()
    assert time.monotonic() - pressed[0] < ENDS_S
    assert [process.poll() is None for process in processes] == [False, False]
    assert "Ctrl-C ends all of it." in printed[0]
    assert b"serving at" in (tmp_path / "serve.log").read_bytes()


def is_serving(printed: list[str]) -> bool:
    """Whether the address that was printed answers."""
    ports = [int(port) for text in printed for port in re.findall(r"http://127.0.0.1:(\d+)/", text)]
    try:
        with socket.create_connection(("127.0.0.1", ports[0]), timeout=5):
            return True
    except (IndexError, OSError):
        return False
