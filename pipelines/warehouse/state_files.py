"""Small files that a run must find again, such as the state of results beside a checkpoint.

They survive a power cut: a reader sees the old content or the new one, whole. A file system that
broke that promise leaves a file that cannot be read, and the error says what to do.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from quotaflow.pipelines.errors import CheckpointError

_T = TypeVar("_T")


def replace(file: Path, text: str) -> None:
    """Replace a file and wait until the disk has it; makes its folder. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    with fresh.open("w", encoding="utf-8") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())
    fresh.replace(file)
    _sync_folder(file.parent)


def load(file: Path, parse: Callable[[str], _T], remedy: str) -> _T | None:
    """The content of a file; None if it does not exist.

    Raises CheckpointError with `remedy` if the file cannot be read or parsed.
    """
    try:
        text = file.read_text(encoding="utf-8")
        return parse(text)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CheckpointError(f"cannot read {file}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        state = "broken" if file.stat().st_size else "empty"
        raise CheckpointError(f"{file} is {state}: {remedy}") from None


def _sync_folder(folder: Path) -> None:
    """Let the disk have the new name, too. Some mounts of object stores cannot do that."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
