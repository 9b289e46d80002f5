"""Folders of demo runs: one per run, and a link for all commands to the newest finished one."""

import fcntl
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import current_thread, main_thread

from quotaflow.pipelines.config.demo_tables import FOLDER
from quotaflow.pipelines.warehouse import private_folder

_MARK = ".running"


@contextmanager
def new_run(home: Path, now: datetime) -> Iterator[Path]:
    """A folder for one run, marked as in use; removed as a whole when the run does not finish."""
    folder = home / FOLDER / f"{now.astimezone(UTC):%Y%m%d-%H%M%S}-{os.getpid()}"
    private_folder.make(folder)
    with (folder / _MARK).open("w", encoding="utf-8") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        try:
            yield folder
        except BaseException:
            remove(folder)
            raise


def publish(home: Path, warehouse: Path) -> bool:
    """Point home/warehouse at a finished run; False if the user has a warehouse of that name."""
    link = home / "warehouse"
    if link.exists() and not link.is_symlink():
        return False
    fresh = home / f".warehouse-{os.getpid()}"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(warehouse, target_is_directory=True)
    fresh.replace(link)
    return True


def remove_older(home: Path, newest: Path) -> None:
    """Remove the folders of runs that ended, but `newest` and what home/warehouse points into."""
    kept = {newest.resolve(), (home / "warehouse").resolve().parent}
    for folder in sorted((home / FOLDER).iterdir()):
        if folder.resolve() not in kept and not _is_running(folder):
            remove(folder)


def remove(folder: Path) -> None:
    """Remove a whole folder: renamed first, and not interruptible."""
    with _uninterrupted():
        doomed = folder.with_name(f".removed-{folder.name}")
        if folder.exists():
            folder.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def _is_running(folder: Path) -> bool:
    try:
        with (folder / _MARK).open(encoding="utf-8") as mark:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Without effect in another thread, which Ctrl-C does not interrupt."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
