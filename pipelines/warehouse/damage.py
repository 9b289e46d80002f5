"""What is wrong with the files of a table in a folder, what is lost by that, and what to do."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from quotaflow.pipelines.errors import DamagedError
from quotaflow.schemas.tables.catalog import ANSWERS, FACTS, RESULTS, TABLES
from quotaflow.udfs.counted import counted

if TYPE_CHECKING:
    from deltalake import DeltaTable

_LOG = "_delta_log"
_MAGIC = b"PAR1"
_MAX_SHOWN = 3
_BACKUP = "put it back from a backup of the folder"


def of_log(root: str, table: str) -> DamagedError | None:
    """The damage of a table's log; None if there is none that is known."""
    log = Path(root, table, _LOG)
    commits = {int(path.stem): path for path in log.glob("*.json") if path.stem.isdecimal()}
    names = [path.name for path in log.glob("*.checkpoint*.parquet")]
    checkpoints = sorted(int(name.partition(".")[0]) for name in names if name[:20].isdecimal())
    first = checkpoints[-1] + 1 if checkpoints else 0
    newest = max([*commits, first - 1])
    for name in names:
        if int(name.partition(".")[0]) == first - 1 and (state := _of_parquet(log / name, None)):
            return _damaged(table, f"{log / name} is {state}: {_BACKUP}")
    for version in range(first, newest + 1):
        path = log / f"{version:020d}.json"
        if state := _of_commit(path):
            lost = counted(newest - version + 1, "commit")
            remedy = f"{_BACKUP}, or go back to the version before: mv {path} {path}.broken"
            is_last = version == newest and version > first and state != "missing"
            what = f"{path} is {state}, so that {lost} cannot be read: "
            again = f". Then {_again(table)}" if is_last else ""
            return _damaged(table, what + (remedy + again if is_last else _BACKUP))
    return None


def of_files(root: str, table: str, live: "DeltaTable") -> DamagedError | None:
    """The damage of the data files of a version; None if there is none."""
    from quotaflow.pipelines.warehouse import delta_files  # noqa: PLC0415  imports pyarrow

    files = delta_files.of_version(live, f"{root}/{table}", TABLES[table].time)
    broken = [
        (file, state) for file in files if (state := _of_parquet(Path(file.path), file.size_bytes))
    ]
    if not broken:
        return None
    rows = [file.rows for file, _ in broken]
    lost = "rows" if None in rows else counted(sum(each or 0 for each in rows), "row")
    starts = [file.first for file, _ in broken if file.first]
    ends = [file.last for file, _ in broken if file.last]
    times = f" from {min(starts):%Y-%m-%d %H:%M:%S} to {max(ends):%H:%M:%S} UTC" if starts else ""
    shown = ", ".join(f"{file.path} is {state}" for file, state in broken[:_MAX_SHOWN])
    left = counted(len(broken) - _MAX_SHOWN, "more file")
    more = f" and {left}" if len(broken) > _MAX_SHOWN else ""
    return _damaged(table, f"{shown}{more}, with {lost}{times}: {_BACKUP}")


def _damaged(table: str, text: str) -> DamagedError:
    return DamagedError(table, f"table {table} is damaged: {text}")


def _again(table: str) -> str:
    """How the rows of a table are made again, as the end of a sentence."""
    if table in ANSWERS:
        return "`quotaflow run --once` computes them again"
    if table in RESULTS or table == "client_metrics":
        return f"`quotaflow rebuild {table} --from TIME` computes them again"
    if table in FACTS:
        return "`quotaflow backfill` reads them from the topic again"
    return "the next `quotaflow snapshot` writes what the cluster has now"


def _of_commit(path: Path) -> str | None:
    """The state of a commit, unless it is a list of actions."""
    try:
        lines = path.read_bytes().splitlines()
        actions = [json.loads(line) for line in lines if line.strip()]
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        return f"not readable ({error.strerror})"
    except (ValueError, RecursionError):
        return "no JSON"
    if not actions:
        return "empty"
    return None if all(isinstance(action, Mapping) for action in actions) else "no JSON of Delta"


def _of_parquet(path: Path, size: int | None) -> str | None:
    """The state of a Parquet file, unless its length and its ends are right."""
    try:
        actual = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(4)
            file.seek(max(actual - 4, 0))
            tail = file.read(4)
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        return f"not readable ({error.strerror})"
    if not actual:
        return "empty"
    if size is not None and actual != size:
        return f"cut to {actual:,} of {size:,} bytes"
    return None if head == tail == _MAGIC else "no Parquet"
