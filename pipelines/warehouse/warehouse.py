"""The warehouse: the tables in a folder, an object store or a catalog schema, and the lock of their
writers.
"""

import fcntl
import getpass
import json
import os
import resource
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import IO, TYPE_CHECKING, Any

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import ConfigError, LockedError, MissingToolError
from quotaflow.pipelines.terminal import logs
from quotaflow.pipelines.warehouse import (
    folder_tables,
    private_folder,
    store_owner,
)
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.python_times import rows_of
from quotaflow.schemas import ddl, migrations
from quotaflow.schemas.grants import OPERATOR_TABLES
from quotaflow.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

OpenSession = Callable[[], "SparkSession"]
"""Opens the Spark session, or returns the open one: what needs none must not wait for a JVM."""

_LOCK = ".lock"
_ADDRESS_SPACE = 1_900 * 1024**2
"""What DuckDB, Arrow and delta-rs reserve. With less, their libraries do not load, or abort."""
_TABLES_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Detail:
    """Number and size of the files of a table's newest version, and its last write.

    A rewrite is a write too. In a catalog the last commit counts, else the newest file; without a
    file `written_at` is None.
    """

    files: int
    size_bytes: int
    written_at: datetime | None


@dataclass(frozen=True)
class Warehouse:
    """The tables of one conf: their names in SQL, and reading and writing them as frames."""

    conf: config.WarehouseSection

    @cached_property
    def place(self) -> Place:
        """Where the tables are; only without a catalog."""
        return Place.from_conf(self.conf)

    def folder(self, table: str) -> Path:
        """The folder of a table; only if the tables are in a folder."""
        return self.conf.folder.resolve() / table

    def target(self, table: str) -> str:
        """The table's name in Spark SQL; not in an object store, where Spark has no name for it."""
        if self.conf.catalog_schema:
            is_ledger = self.conf.ledger_schema is not None and table in OPERATOR_TABLES
            return f"{self.conf.ledger_schema if is_ledger else self.conf.catalog_schema}.{table}"
        escaped = self.place.path(table).replace("`", "``")
        return f"delta.`{escaped}`"

    def checkpoint(self, job: str) -> Path:
        """The folder of a query's checkpoint."""
        return self.conf.checkpoint_folder.resolve() / job

    def ensure(self, open_session: OpenSession, tables: Iterable[Table]) -> None:
        """Create missing tables, and bring live ones to this schema version.

        In a folder, only a table of an older schema version needs a session. Raises JobError if a
        folder's table cannot be written.
        """
        opening = Lock()

        def once() -> "SparkSession":
            with opening:
                return open_session()

        # A commit mostly waits: in parallel they take a sixth to a third less time.
        with ThreadPoolExecutor(_TABLES_AT_ONCE, "ensure") as pool:
            for done in [pool.submit(self._ensure, once, table) for table in tables]:
                done.result()

    def _ensure(self, open_session: OpenSession, table: Table) -> None:
        if self.conf.catalog_schema:
            spark = open_session()
            if self.exists(spark, table.name):
                self._migrate(lambda: spark, table, self.properties(spark, table.name))
            else:
                spark.sql(ddl.create(table, self.target(table.name)))
        elif not self.place.is_made(table.name):
            folder_tables.create(self.place, table)
        else:
            with folder_tables.as_job_error(table.name):
                live = self.place.open(table.name)
            self._migrate(open_session, table, dict(live.metadata().configuration))

    def _migrate(
        self, open_session: OpenSession, table: Table, properties: Mapping[str, str]
    ) -> None:
        target = self.target(table.name)
        version = migrations.version(properties)
        newest = migrations.SCHEMA_VERSION
        try:
            steps = migrations.due(table.name, version, migrations.STEPS, newest)
            if steps and self.conf.is_store:
                raise ConfigError(self._not_migrated(table.name))
            self._run(open_session, target, [sql for step in steps for sql in step.alter])
            live = self._column_types(open_session, table)
            change = ddl.difference(table, target, live)
        except (ddl.IncompatibleTableError, migrations.SchemaVersionError) as error:
            raise ConfigError(str(error)) from None
        if change and self.conf.is_store:
            folder_tables.add_columns(self.place, table)
        elif change:
            open_session().sql(change)
        for step in steps:
            copied = ddl.renamed(target, step.renames, live)
            self._run(open_session, target, [*copied, *step.fill])
        if version < newest:
            self.set_property(
                open_session, table.name, migrations.SCHEMA_VERSION_PROPERTY, str(newest)
            )

    def _not_migrated(self, table: str) -> str:
        """The error for a step of an older release, which is SQL of Spark."""
        return (
            f"{table} in {self.conf.path} is of an older release, and only Spark changes it, which "
            "writes to no object store: copy the tables into a folder, run quotaflow upkeep there "
            "with this release, and copy them back"
        )

    def _column_types(self, open_session: OpenSession, table: Table) -> dict[str, str]:
        """The types of the live table's columns, as Spark names them."""
        if self.conf.catalog_schema:
            columns = self.read(open_session(), table.name).schema
            return {column.name: column.dataType.simpleString() for column in columns}
        return ddl.live_types(self.place.open(table.name))

    def check_readable(self, spark: "SparkSession", table: str) -> None:
        """Raise ConfigError for a live table that a step has yet to bring up to date."""
        try:
            migrations.check_readable(table, self.properties(spark, table))
        except migrations.SchemaVersionError as error:
            raise ConfigError(str(error)) from None

    def _run(self, open_session: OpenSession, target: str, statements: Iterable[str]) -> None:
        for sql in statements:
            open_session().sql(sql.format(target=target))

    def exists(self, spark: "SparkSession", table: str) -> bool:
        """Whether the table exists."""
        if self.conf.catalog_schema:
            return bool(spark.catalog.tableExists(self.target(table)))
        return self.place.is_made(table)

    def detail(self, open_session: OpenSession, table: str) -> Detail:
        """The files of the table's newest version, and its last write."""
        if not self.conf.catalog_schema:
            files: Any = self.place.open(table).get_add_actions(flatten=True)
            times = files["modification_time"].to_pylist()
            written_at = datetime.fromtimestamp(max(times) / 1e3, UTC) if times else None
            return Detail(files.num_rows, sum(files["size_bytes"].to_pylist()), written_at)
        (row,) = rows_of(open_session().sql(f"DESCRIBE DETAIL {self.target(table)}").toArrow())
        return Detail(row["numFiles"], row["sizeInBytes"], row["lastModified"])

    def properties(self, spark: "SparkSession", table: str) -> dict[str, str]:
        """The properties of an existing table."""
        if not self.conf.catalog_schema:
            return dict(self.place.open(table).metadata().configuration)
        rows = spark.sql(f"SHOW TBLPROPERTIES {self.target(table)}").collect()
        return {row["key"]: row["value"] for row in rows}

    def kept_since(self, spark: "SparkSession", table: str) -> datetime | None:
        """The time before which retention removed the table's rows; None if it never did."""
        text = self.properties(spark, table).get(ddl.KEPT_SINCE)
        return None if text is None else datetime.fromisoformat(text)

    def keep_since(self, open_session: OpenSession, table: str, time: datetime) -> None:
        """Record that rows before this time are removed."""
        self.set_property(open_session, table, ddl.KEPT_SINCE, time.isoformat())

    def set_property(self, open_session: OpenSession, table: str, key: str, value: str) -> None:
        """Set a property of an existing table."""
        if not self.conf.catalog_schema and folder_tables.is_plain(self.place.open(table)):
            folder_tables.set_property(self.place, table, key, value)
            return
        pair = f"{ddl.quoted(key)} = {ddl.quoted(value)}"
        open_session().sql(f"ALTER TABLE {self.target(table)} SET TBLPROPERTIES ({pair})")

    def read(self, spark: "SparkSession", table: str, version: int | None = None) -> "DataFrame":
        """The table as it is now, or in a version."""
        if self.conf.is_store:
            from quotaflow.pipelines.warehouse import store_frames  # noqa: PLC0415  only here

            return store_frames.read(spark, self.place, table, version)
        if version is None:
            return spark.read.table(self.target(table))
        return spark.sql(f"SELECT * FROM {self.target(table)} VERSION AS OF {version}")

    def write(self, writer: "DataFrameWriter", table: str) -> None:
        """Run a Delta writer against the table; not in an object store."""
        if self.conf.catalog_schema:
            writer.saveAsTable(self.target(table))
        else:
            writer.save(str(self.folder(table)))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only writer of a folder or an object store. Raises LockedError with the holder.

        On a plain file system, Delta is safe only within one JVM. A catalog needs no lock, because
        Delta's commits there exclude each other. The kernel releases the lock when its holder dies.
        For an object store the lock is beside the checkpoints, and a table in the store says which
        checkpoints its writers have.
        """
        if self.conf.catalog_schema:
            yield
            return
        check_address_space()
        path = self.conf.state_folder / _LOCK
        with _opened(path) as file:
            _take(file.fileno(), path)
            if self.conf.is_store:
                store_owner.check(self.place, self.conf.checkpoint_folder.resolve())
            file.truncate(0)
            file.write(json.dumps(_self()))
            file.flush()
            try:
                yield
            finally:
                file.truncate(0)

    def holder(self) -> str | None:
        """The holder of the lock, None if there is none; takes no exclusive lock."""
        path = self.conf.state_folder / _LOCK
        try:
            # Even a shared lock can make a writer fail. So an empty file is not locked.
            if self.conf.catalog_schema or not path.stat().st_size:
                return None
            with path.open(encoding="utf-8") as file:
                fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _named(path)
        except OSError:
            return None
        return None


def check_address_space() -> None:
    """Raise MissingToolError if the libraries that read tables have no room."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    if 0 <= allowed < _ADDRESS_SPACE:
        raise MissingToolError(
            f"this process may have {allowed // 1024**2:,} MiB of address space, and to read "
            f"tables takes {_ADDRESS_SPACE // 1024**2:,}: raise ulimit -v"
        )


def _opened(path: Path) -> IO[str]:
    try:
        private_folder.make(path.parent)
        return path.open("a+", encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"cannot write to {path.parent}: {error.strerror}: make it writable, or name another "
            "place with --set warehouse.path=FOLDER"
        ) from None


def _take(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LockedError(
            f"{path.parent} is being written by {_named(path)}: wait for it, stop it, "
            "or name another place with --set warehouse.path=FOLDER"
        ) from None


def _named(path: Path) -> str:
    """What the holder wrote about itself, as text. It may not have written it yet."""
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        holder = None
    holder = holder if isinstance(holder, dict) else {}
    return (
        f"process {holder.get('pid', 'unknown')} ({holder.get('command', 'unknown')}) of "
        f"{holder.get('user', 'unknown')} on {holder.get('host', 'this host')} since "
        f"{holder.get('since', 'now')}"
    )


def user() -> str:
    """The user that runs this process, for messages."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's arbitrary uid has no name
        return f"uid {os.getuid()}"


def _self() -> dict[str, object]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "user": user(),
        # Only the subcommand: arguments may be private.
        "command": f"quotaflow {logs.command() or ''}".rstrip(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
