"""Instances of DuckDB, used one task after the other: to start one takes longer than small tasks.

A task has an instance for itself, with a connection of its own. Its views, tables and registered
rows are temporary, so they end with the connection. An instance that wrote to its temporary folder
ends with the task too, so that no file outlives it.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from uuid import uuid4

import duckdb

from quotaflow.schemas import programs
from quotaflow.udfs.engine.connections import connect

_MAX_USES = 100
"""What an instance keeps between tasks, like metadata of Parquet files, is bounded by this."""


@dataclass(slots=True)
class Instance:
    """A running DuckDB with the macros of all rules, and those that its rules added."""

    connection: duckdb.DuckDBPyConnection
    scratch: Path
    uses: int = 0
    is_sound: bool = True
    _macros: set[str] = field(default_factory=set)

    @contextmanager
    def connected(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection of its own, closed at the end."""
        with self.connection.cursor() as connection:
            yield connection

    def add_macros(self, macros: str) -> None:
        """Make the macros of this text, unless they are there. Raises duckdb.Error."""
        if not macros or macros in self._macros:
            return
        # Some of them may be made, which would then be made twice.
        was_sound, self.is_sound = self.is_sound, False
        self.connection.execute(macros)
        self.is_sound = was_sound
        self._macros.add(macros)

    def close(self) -> None:
        """End it, and remove its temporary folder."""
        self.connection.close()
        shutil.rmtree(self.scratch, ignore_errors=True)


_Key = tuple[int, int, int]
_idle: dict[_Key, Instance] = {}
"""One that nobody uses, by process, memory and threads: a forked process must not use another's."""


@contextmanager
def borrowed(memory_mb: int, threads: int) -> Iterator[Instance]:
    """An instance for the caller alone. Who borrows another meanwhile has another one.

    After an error it is not used again.
    """
    key = (os.getpid(), memory_mb, threads)
    instance = _idle.pop(key, None) or _started(memory_mb, threads)
    instance.uses += 1
    is_sound = False
    try:
        yield instance
        is_sound = instance.is_sound and instance.uses < _MAX_USES and not instance.scratch.exists()
    finally:
        if not is_sound or _idle.setdefault(key, instance) is not instance:
            instance.close()


def _started(memory_mb: int, threads: int) -> Instance:
    # DuckDB makes the folder when it first needs it.
    scratch = Path(tempfile.gettempdir(), f"quotaflow-{uuid4().hex}")
    connection = connect(
        threads=threads, memory_limit=f"{memory_mb}MiB", temp_directory=str(scratch)
    )
    instance = Instance(connection, scratch)
    instance.connection.execute("SET parquet_metadata_cache = true")
    instance.add_macros(_macros())
    return instance


@atexit.register
def _close_idle() -> None:
    for key in [key for key in _idle if key[0] == os.getpid()]:
        _idle.pop(key).close()


@cache
def _macros() -> str:
    text = files("quotaflow.udfs.engine").joinpath("macros.sql").read_text(encoding="utf-8")
    return f"{programs.MACROS}\n{text}"
