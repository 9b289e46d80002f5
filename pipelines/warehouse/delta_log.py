"""Files of a Delta table that a query has not read yet, from the table's log."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MAX_COMMITS = 10_000


@dataclass(frozen=True, slots=True)
class UnreadFiles:
    """Files and bytes that are appended and not read, and when the oldest were appended (ms).

    `is_cut`: the log starts after the version that the query reads next, so the query cannot read
    that version any more.
    """

    files: int = 0
    bytes: int = 0
    oldest_ms: int | None = None
    is_cut: bool = False


def of_table(folder: Path, version: int) -> UnreadFiles:
    """Files appended in this version and later, without rewrites, which the query skips too."""
    log = folder / "_delta_log"
    versions = sorted(v for path in log.glob("*.json") if (v := _version(path)) >= version)
    files = size = 0
    oldest = None
    for number in versions[:_MAX_COMMITS]:
        added, at_ms = _appended(log / f"{number:020d}.json")
        files += len(added)
        size += sum(added)
        oldest = at_ms if oldest is None and added else oldest
    return UnreadFiles(files, size, oldest, bool(versions) and versions[0] > version)


def _version(path: Path) -> int:
    return int(path.stem) if path.stem.isdecimal() else -1


def _appended(commit: Path) -> tuple[list[int], int | None]:
    """Sizes of the files that a commit appended, [] if it also removed some; and its time (ms)."""
    added, removed, at_ms = list[int](), False, None
    for line in commit.read_text(encoding="utf-8").splitlines():
        action: dict[str, Any] = json.loads(line)
        if (add := action.get("add")) and add["dataChange"]:
            added.append(int(add["size"]))
        removed = removed or bool((remove := action.get("remove")) and remove["dataChange"])
        at_ms = action.get("commitInfo", {}).get("timestamp", at_ms)
    return ([] if removed else added), at_ms
