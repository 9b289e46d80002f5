"""What is wrong with the files of a table in a folder, what is lost by that, and what to do."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from quotaflow.pipelines.errors import DamagedError
from quotaflow.schemas.tables.catalog import ANSWERS, FACTS, RESULTS, TABLES
from quotaflow.schemas.tables.declared import ANSWER_STATE, FETCH_SESSIONS, FETCHES
from quotaflow.udfs.counted import counted

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from quotaflow.pipelines.warehouse.delta_files import DataFile

LOG = "_delta_log"
_MAGIC = b"PAR1"
_MAX_SHOWN = 3
CLIENT_METRICS = "client_metrics"
COMPUTED_WHOLE = ANSWERS.keys() | {ANSWER_STATE.name}
FROM_TOPICS = FACTS - {CLIENT_METRICS, FETCHES.name, FETCH_SESSIONS.name}


@dataclass(frozen=True, slots=True)
class BrokenLog:
    """The first file of a log that cannot be read: a checkpoint, or the commit of a version."""

    path: Path
    state: str
    version: int
    newest: int
    is_checkpoint: bool = False


@dataclass(frozen=True, slots=True)
class BrokenFiles:
    """Data files that cannot be read, each with its state: at least one."""

    files: "Sequence[tuple[DataFile, str]]"

    @property
    def rows(self) -> int | None:
        """Their rows; None if a writer did not count them."""
        counts = [file.rows for file, _ in self.files]
        return None if None in counts else sum(each or 0 for each in counts)

    @property
    def times(self) -> tuple[datetime, datetime] | None:
        """The times of their first and last row; None if a writer did not record them."""
        starts = [file.first for file, _ in self.files if file.first]
        ends = [file.last for file, _ in self.files if file.last]
        whole = len(starts) == len(ends) == len(self.files)
        return (min(starts), max(ends)) if whole else None


def of_log(root: str, table: str) -> DamagedError | None:
    """The damage of a table's log; None if there is none that is known."""
    broken = broken_log(root, table)
    if broken is None:
        return None
    commits = counted(broken.newest - broken.version + 1, "commit")
    cannot = "" if broken.is_checkpoint else f", so that {commits} cannot be read"
    return _damaged(table, f"{broken.path} is {broken.state}{cannot}")


def broken_log(root: str, table: str) -> BrokenLog | None:
    """The first broken file of a log that its readers need."""
    log = Path(root, table, LOG)
    commits = {int(path.stem): path for path in log.glob("*.json") if path.stem.isdecimal()}
    paths = [path for path in log.glob("*.checkpoint*.parquet") if path.name[:20].isdecimal()]
    checkpoints = sorted(int(path.name[:20]) for path in paths)
    first = checkpoints[-1] + 1 if checkpoints else 0
    newest = max([*commits, first - 1])
    for path in paths:
        if int(path.name[:20]) == first - 1 and (state := _of_parquet(path, None)):
            return BrokenLog(path, state, first - 1, newest, is_checkpoint=True)
    for version in range(first, newest + 1):
        path = log / f"{version:020d}.json"
        if state := _of_commit(path):
            return BrokenLog(path, state, version, newest)
    return None


def of_files(root: str, table: str, live: "DeltaTable") -> DamagedError | None:
    """The damage of the data files of a version; None if there is none."""
    broken = broken_files(root, table, live)
    if broken is None:
        return None
    shown = ", ".join(f"{file.path} is {state}" for file, state in broken.files[:_MAX_SHOWN])
    left = counted(len(broken.files) - _MAX_SHOWN, "more file")
    more = f" and {left}" if len(broken.files) > _MAX_SHOWN else ""
    return _damaged(table, f"{shown}{more}, with {lost(broken.rows, broken.times)}")


def broken_files(
    root: str, table: str, live: "DeltaTable", time: str | None = None
) -> BrokenFiles | None:
    """The data files of a version that cannot be read, with their times by a column.

    None: each can be read. Without a column by that of the table.
    """
    from quotaflow.pipelines.warehouse import delta_files  # noqa: PLC0415  imports pyarrow

    files = delta_files.of_version(live, f"{root}/{table}", time or TABLES[table].time)
    states = ((file, _of_parquet(Path(file.path), file.size_bytes)) for file in files)
    broken = [(file, state) for file, state in states if state]
    return BrokenFiles(broken) if broken else None


def lost(rows: int | None, times: tuple[datetime, datetime] | None) -> str:
    """Rows that are lost, as text."""
    text = "rows" if rows is None else counted(rows, "row")
    if times is None:
        return text
    first, last = times
    end = f"{last:%H:%M:%S}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M:%S}"
    return f"{text} from {first:%Y-%m-%d %H:%M:%S} to {end} UTC"


def _damaged(table: str, text: str) -> DamagedError:
    remedy = f"put it back from a backup, or `quotaflow upkeep --repair {table}` {_again(table)}"
    return DamagedError(table, f"table {table} is damaged: {text}: {remedy}")


def _again(table: str) -> str:
    """What a repair does, as the end of a sentence."""
    if table in COMPUTED_WHOLE:
        return "computes the table again"
    if table in RESULTS or table == CLIENT_METRICS:
        return "computes the rows again"
    if table in FROM_TOPICS:
        return "reads the rows from the topic again"
    if "is_removed" in TABLES[table].column_names:
        return "goes on without it, and the next `quotaflow snapshot` writes what the cluster has"
    return "goes on without it"


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
