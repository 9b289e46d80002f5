"""Which checkpoints an object store's tables belong to: two runs of one query would double rows.

A lock on a machine does not exclude another machine. So the store has a table without rows whose
description names the folder of checkpoints by a random id; the folder has the id in a file. Of
writers that make the table at the same moment delta-rs commits each, one after the other. The first
commit alone was put where there was none: so it says whose the tables are.
"""

import json
import secrets
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING

from quotaflow.pipelines.errors import ConfigError, LockedError
from quotaflow.pipelines.warehouse import folder_tables, state_files
from quotaflow.pipelines.warehouse.place import Place

if TYPE_CHECKING:
    from deltalake import DeltaTable

_TABLE = "_writer"
_FILE = "store.json"
_PROBED = "quotaflow.conditional_puts"
_WRITERS = 4


def check(place: Place, checkpoints: Path) -> None:
    """Raise LockedError if the tables belong to other checkpoints; claims those of nobody.

    Raises ConfigError for a store that lets a second writer overwrite a commit.
    """
    own = _own_id(checkpoints)
    with folder_tables.as_job_error(_TABLE):
        if not place.is_made(_TABLE):
            _make(place, f"{own} {socket.gethostname()}")
        if _PROBED not in place.open(_TABLE).metadata().configuration:
            _check_puts(place)
        claimed, _, host = _claim(place).partition(" ")
    if claimed != own:
        raise LockedError(
            f"the tables of {place.root} are written with checkpoints of {host or 'another host'}, "
            f"and {checkpoints} is another folder: name theirs in warehouse.checkpoints, put its "
            "backup here, or read the topics into another prefix with --set warehouse.path=URI"
        )


def _claim(place: Place) -> str:
    """The description in the first commit, which no later one changes."""
    _, commit = next(place.commits(_TABLE, 0))
    actions = map(json.loads, commit.splitlines())
    described = (each["metaData"] for each in actions if "metaData" in each)
    return next((each.get("description") or "" for each in described), "")


def _own_id(checkpoints: Path) -> str:
    """The id of a folder of checkpoints, made at first use."""
    file = checkpoints / _FILE
    remedy = "it has the id by which the store knows these checkpoints: put its backup back"
    own = state_files.load(file, lambda text: str(json.loads(text)["id"]), remedy)
    if own is None:
        own = secrets.token_hex(16)
        state_files.replace(file, json.dumps({"id": own}))
    return own


def _make(place: Place, claim: str) -> None:
    """Make the table, unless another writer makes it at the same time."""
    import pyarrow as pa  # noqa: PLC0415  --help need not wait for it
    from deltalake import DeltaTable  # noqa: PLC0415  as above
    from deltalake.exceptions import DeltaError  # noqa: PLC0415  as above

    # Whose it is is read afterwards.
    with suppress(DeltaError):
        DeltaTable.create(
            place.path(_TABLE),
            pa.schema([pa.field("id", pa.string())]),
            mode="error",
            description=claim,
            storage_options=place.storage_options,
        )


def _check_puts(place: Place) -> None:
    """Raise ConfigError if the store takes a second file of one version of a log.

    delta-rs looks for a newer version before it puts one. So writers begin at the same moment, all
    from one version: where each put is conditional, each makes a version of its own.
    """
    from deltalake.exceptions import DeltaError  # noqa: PLC0415  --help need not wait for it

    before = place.open(_TABLE).version()
    opened = [place.open(_TABLE) for _ in range(_WRITERS)]
    barrier = Barrier(_WRITERS)

    def put(live: "DeltaTable") -> bool:
        barrier.wait()
        with suppress(DeltaError):
            live.create_write_transaction([], "append", live.schema())
            return True
        return False

    with ThreadPoolExecutor(_WRITERS) as pool:
        made = sum(pool.map(put, opened))
    # Other processes may have made more.
    if made > place.open(_TABLE).version() - before:
        raise ConfigError(
            f"{place.root}: this store overwrites an object that exists (it ignores "
            "If-None-Match), so two writers could lose rows: use a store, or a release of it, "
            "that has conditional writes"
        )
    # After a conflict with another first writer the next start tries again.
    with suppress(DeltaError):
        folder_tables.set_on(place.open(_TABLE), _PROBED, "yes")
