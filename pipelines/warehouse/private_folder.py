"""Folders that only this user can read: tables say who talks to which topic, from where."""

from pathlib import Path
from stat import S_IROTH, S_IXOTH

PRIVATE = 0o700


def make(folder: Path) -> None:
    """Make a folder and its missing parents for this user alone. One that exists stays as it is.

    Raises OSError.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=PRIVATE, exist_ok=True)


def is_open_to_others(folder: Path) -> bool:
    """Whether users who are neither its owner nor in its group can read a folder. Raises OSError.

    They cannot where a folder above it keeps them out.
    """
    path = folder.resolve()
    is_readable = path.stat().st_mode & (S_IROTH | S_IXOTH)
    return bool(is_readable) and all(each.stat().st_mode & S_IXOTH for each in path.parents)
