"""Files of a Delta table that a query has not read yet, from the table's log."""

import json
from dataclasses import dataclass
from itertools import islice
from typing import Any

from quotaflow.pipelines.warehouse.place import Place

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


def of_table(place: Place, table: str, version: int) -> UnreadFiles:
    """Files appended in this version and later, without rewrites, which the query skips too."""
    files = size = 0
    first = oldest = None
    for number, text in islice(place.commits(table, version), _MAX_COMMITS):
        first = number if first is None else first
        added, at_ms = _appended(text)
        files += len(added)
        size += sum(added)
        oldest = at_ms if oldest is None and added else oldest
    return UnreadFiles(files, size, oldest, first is not None and first > version)


def _appended(commit: str) -> tuple[list[int], int | None]:
    """Sizes of the files that a commit appended, [] if it also removed some; and its time (ms)."""
    added, removed, at_ms = list[int](), False, None
    for line in commit.splitlines():
        action: dict[str, Any] = json.loads(line)
        if (add := action.get("add")) and add["dataChange"]:
            added.append(int(add["size"]))
        removed = removed or bool((remove := action.get("remove")) and remove["dataChange"])
        at_ms = action.get("commitInfo", {}).get("timestamp", at_ms)
    return ([] if removed else added), at_ms
