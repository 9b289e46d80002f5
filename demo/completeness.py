"""The demo's last step: every table and view has rows, or its head says why it has none."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import JobError, NeverMadeError
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.view import View

FILLED = frozenset(
    {
        *("moving_replicas", "ongoing_moves", "cordoned_brokers"),
        *("share_fetches", "share_group_health", "streams_applications", "why_groups_lag"),
        *("remote_reads", "remote_reads_by_hour", "remote_read_advice", "log_start_divergence"),
        *("producer_rack_advice", "unknown_racks", "needless_costs"),
    }
)
"""What the demo has rows of, though heads allow none: it moves replicas, cordons a
broker, has a share group, and its past has what its brokers and clients cannot do."""


def heads_of_all() -> dict[str, Table | View]:
    """Every table and view by name."""
    return {**TABLES, **views.load()}


def without_rows(warehouse: Path, heads: Mapping[str, Table | View]) -> dict[str, str | None]:
    """Each table and view that has no rows, and the reason of its head."""
    reader = FolderReader(Warehouse(config.WarehouseSection(path=str(warehouse))))
    extents = reader.extents(name for name in heads if name in TABLES)
    # To plan a text takes longest, on one core.
    with ThreadPoolExecutor(2, "views") as pool:
        has_rows = pool.map(
            lambda name: extents[name].rows if name in extents else _has_rows(reader, name), heads
        )
        return {
            name: heads[name].empty for name, some in zip(heads, has_rows, strict=True) if not some
        }


def report(
    empty: Mapping[str, str | None],
    of_all: int,
    say: Callable[[str], None],
    *,
    must_be_complete: bool,
) -> None:
    """Say how many have rows, and which have none. Raises JobError for one without a reason."""
    say(f"{of_all - len(empty)} of {of_all} tables and views have rows")
    for name, reason in empty.items():
        say(f"{name} has none{f': it is empty {reason}' if reason else ''}")
    unexplained = [name for name, reason in empty.items() if not reason or name in FILLED]
    if unexplained and must_be_complete:
        raise JobError(
            f"no row came into {', '.join(unexplained)}: on a busy machine a scene can end before "
            "a job reads it. Every command reads the tables all the same; or run the demo again"
        )


def _has_rows(reader: FolderReader, name: str) -> bool:
    try:
        return bool(reader.rows(f"SELECT 1 FROM {name} LIMIT 1"))
    except NeverMadeError:
        return False
