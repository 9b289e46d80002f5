"""Java processes that are left of a command, for a while or for good."""

import time
from pathlib import Path

import psutil


def java_below(folder: Path) -> list[int]:
    """Those whose command line names the folder."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline", "name"])
        if process.info["name"] == "java" and str(folder) in " ".join(process.info["cmdline"] or [])
    ]


def await_none(folder: Path, timeout_s: float) -> list[int]:
    """Those that are left after so long, at most."""
    deadline = time.monotonic() + timeout_s
    while (left := java_below(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left
