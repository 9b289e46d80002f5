"""Makes tables in a folder or an object store by delta-rs: it takes milliseconds, Spark a second.

No table is clustered there, because delta-rs writes rows there and cannot keep clustering.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from quotaflow.pipelines.errors import ConfigError, JobError
from quotaflow.pipelines.spark import failures
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.schemas import ddl
from quotaflow.schemas.table import Table

if TYPE_CHECKING:
    from deltalake import DeltaTable

_OF_DELTA = "delta."
_PLAIN_VERSION, _PLAIN_FEATURES = 2, {"appendOnly", "invariants"}
"""The writer version that every client has, and what a table of it may have."""
_NOT_IN_PATHS = re.compile(r"[\[\]|^\\]|%[0-9A-Fa-f]{2}")
"""delta-rs ends the process, or reads another folder, where a path has one of these."""


def is_plain(live: "DeltaTable") -> bool:
    """Whether delta-rs can write the table: it has no feature beyond those of version 2.

    Versions 3 to 6 have features that are not listed, such as constraints.
    """
    protocol = live.protocol()
    if protocol.writer_features is None:
        return int(protocol.min_writer_version) <= _PLAIN_VERSION
    return set(protocol.writer_features) <= _PLAIN_FEATURES


def create(place: Place, table: Table) -> None:
    """Make an empty table with the declared columns and properties, unless it exists.

    Raises ConfigError for a folder whose path delta-rs cannot read, JobError if it cannot write.
    """
    if odd := _NOT_IN_PATHS.search(place.root):
        raise ConfigError(
            f"warehouse.path: {place.root} has {odd[0]} in it, with which Delta tables "
            "cannot be read: name another folder with --set warehouse.path=FOLDER"
        )
    from deltalake import DeltaTable  # noqa: PLC0415  --help need not wait for it

    columns = [
        pa.field(column.name, column.type, metadata={"comment": column.comment})
        for column in table.columns
    ]
    stated = ddl.properties(table)
    with as_job_error(table.name):
        live = DeltaTable.create(
            place.path(table.name),
            pa.schema(columns),
            mode="ignore",
            partition_by=list(table.partitioning) or None,
            description=table.comment,
            configuration={k: v for k, v in stated.items() if k.startswith(_OF_DELTA)},
            storage_options=place.storage_options,
        )
        # delta-rs takes properties of others only for a table that exists.
        for key, value in stated.items():
            if not key.startswith(_OF_DELTA):
                set_on(live, key, value)


def set_property(place: Place, table: str, key: str, value: str) -> None:
    """Set a property of an existing table. Raises JobError if delta-rs cannot write."""
    with as_job_error(table):
        drop_checksum(place, table)
        set_on(place.open(table), key, value)


def add_columns(place: Place, table: Table) -> None:
    """Add the declared columns that a live table lacks. Raises JobError as above."""
    from deltalake import Field, Schema  # noqa: PLC0415  --help need not wait for it

    with as_job_error(table.name):
        live = place.open(table.name)
        there = {field.name for field in live.schema().fields}
        declared = Schema.from_arrow(table.arrow).fields
        new: list[Field] = [field for field in declared if field.name not in there]
        live.alter.add_columns(new)


@contextmanager
def as_job_error(table: str) -> Iterator[None]:
    """Turn errors of delta-rs and of files within the block into one that names the table."""
    from deltalake.exceptions import DeltaError  # noqa: PLC0415  --help need not wait for it

    try:
        yield
    except (DeltaError, OSError) as error:
        raise JobError(f"{table}: cannot write: {failures.one_line(error)}") from error


def drop_checksum(place: Place, table: str) -> None:
    """Remove Spark's checksum of `_last_checkpoint`, a file that a commit of delta-rs may replace.

    Spark would wait 3 s for a file that fits, at the first read of the table in each session.
    """
    if place.store is None:
        crc = Path(place.path(table), "_delta_log", "._last_checkpoint.crc")
        crc.unlink(missing_ok=True)


def set_on(live: "DeltaTable", key: str, value: str) -> None:
    """Set a property of an opened table. Raises DeltaError."""
    live.alter.set_table_properties({key: value}, raise_if_not_exists=False)
