"""Which checkpoints an object store's tables belong to: two runs of one query would double rows.

A lock on a machine does not exclude another machine. So the store has a table without rows whose
description names the folder of checkpoints by a random id; the folder has the id in a file. The
table is made by a conditional put, so of two first writers one fails.
"""

import json
import secrets
import socket
from contextlib import suppress
from pathlib import Path

from quotaflow.pipelines.errors import ConfigError, LockedError
from quotaflow.pipelines.warehouse import folder_tables, state_files
from quotaflow.pipelines.warehouse.place import Place

_TABLE = "_writer"
_FILE = "store.json"
_PROBED = "quotaflow.probed"


def check(place: Place, checkpoints: Path) -> None:
    """Raise LockedError if the tables belong to other checkpoints; claims those of nobody.

    Raises ConfigError for a store that lets a second writer overwrite a commit.
    """
    own = _own_id(checkpoints)
    with folder_tables.as_job_error(_TABLE):
        if not place.is_made(_TABLE):
            _make(place, f"{own} {socket.gethostname()}")
        metadata = place.open(_TABLE).metadata()
        if _PROBED not in metadata.configuration:
            _check_puts(place)
    claimed, _, host = (metadata.description or "").partition(" ")
    if claimed != own:
        raise LockedError(
            f"the tables of {place.root} are written with checkpoints of {host or 'another host'}, "
            f"and {checkpoints} is another folder: name theirs in warehouse.checkpoints, put its "
            "backup here, or read the topics into another prefix with --set warehouse.path=URI"
        )


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
    """Raise ConfigError if the store takes a second file of one version of a log."""
    from deltalake.exceptions import DeltaError  # noqa: PLC0415  as above

    first, second = place.open(_TABLE), place.open(_TABLE)
    version = first.version()
    # Whichever way it is refused: as a conflict, also with another process, or by the next version.
    with suppress(DeltaError):
        folder_tables.set_on(first, _PROBED, "first")
        folder_tables.set_on(second, _PROBED, "second")
        if place.open(_TABLE).version() < version + 2:
            raise ConfigError(
                f"{place.root}: this store overwrites an object that exists (it ignores "
                "If-None-Match), so two writers could lose rows: use a store, or a release of it, "
                "that has conditional writes"
            )
