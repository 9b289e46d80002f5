"""Where the tables are: a folder or a catalog schema, and who may write to it now."""

import fcntl
import getpass
import json
import os
import socket
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import ConfigError, LockedError
from quotaflow.schemas import ddl, migrations
from quotaflow.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

_LOCK = ".lock"
_TABLES_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Detail:
    """What Delta says of a table's files as they are now."""

    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Warehouse:
    """The tables of one conf: their names in SQL, and how frames are read from and written to."""

    conf: config.WarehouseSection

    def folder(self, table: str) -> Path:
        """Where a table is on disk; only without a catalog."""
        return self.conf.folder.resolve() / table

    def target(self, table: str) -> str:
        """The table's name in Spark SQL."""
        if self.conf.catalog_schema:
            return f"{self.conf.catalog_schema}.{table}"
        escaped = str(self.folder(table)).replace("`", "``")
        return f"delta.`{escaped}`"

    def checkpoint(self, job: str) -> Path:
        """The folder of a query's checkpoint."""
        return self.conf.checkpoint_folder.resolve() / job

    def ensure(self, spark: "SparkSession", tables: Iterable[Table]) -> None:
        """Create the tables that are missing and add the columns that live ones lack."""
        # Much of a commit is waiting: side by side they take a sixth to a third less.
        with ThreadPoolExecutor(_TABLES_AT_ONCE, "ensure") as pool:
            for done in [pool.submit(self._ensure, spark, table) for table in tables]:
                done.result()

    def _ensure(self, spark: "SparkSession", table: Table) -> None:
        target = self.target(table.name)
        if not self.exists(spark, table.name):
            spark.sql(ddl.create(table, target))
            return
        properties = self.properties(spark, table.name)
        version = int(properties.get(migrations.SCHEMA_VERSION_PROPERTY, "1"))
        newest = migrations.SCHEMA_VERSION
        try:
            steps = migrations.due(table.name, version, migrations.STEPS, newest)
            self._run(spark, target, [sql for step in steps for sql in step.alter])
            live = {f.name: f.dataType.simpleString() for f in self.read(spark, table.name).schema}
            change = ddl.difference(table, target, live)
        except (ddl.IncompatibleTableError, migrations.SchemaVersionError) as error:
            raise ConfigError(str(error)) from None
        if change:
            spark.sql(change)
        self._run(spark, target, [sql for step in steps for sql in step.fill])
        if version < newest:
            self.set_property(spark, table.name, migrations.SCHEMA_VERSION_PROPERTY, str(newest))

    def _run(self, spark: "SparkSession", target: str, statements: Iterable[str]) -> None:
        for sql in statements:
            spark.sql(sql.format(target=target))

    def exists(self, spark: "SparkSession", table: str) -> bool:
        """Whether the table was ever made."""
        if self.conf.catalog_schema:
            return bool(spark.catalog.tableExists(self.target(table)))
        return (self.folder(table) / "_delta_log").is_dir()

    def detail(self, spark: "SparkSession", table: str) -> Detail:
        """How many files the table's newest version has, and their size."""
        row = spark.sql(f"DESCRIBE DETAIL {self.target(table)}").collect()[0]
        return Detail(row["numFiles"], row["sizeInBytes"])

    def properties(self, spark: "SparkSession", table: str) -> dict[str, str]:
        """The properties of a table that is there."""
        rows = spark.sql(f"SHOW TBLPROPERTIES {self.target(table)}").collect()
        return {row["key"]: row["value"] for row in rows}

    def kept_since(self, spark: "SparkSession", table: str) -> datetime | None:
        """Before which time retention removed the table's rows; None where it never did."""
        text = self.properties(spark, table).get(ddl.KEPT_SINCE)
        return None if text is None else datetime.fromisoformat(text)

    def keep_since(self, spark: "SparkSession", table: str, time: datetime) -> None:
        """Remember that rows from before this time are removed."""
        self.set_property(spark, table, ddl.KEPT_SINCE, time.isoformat())

    def set_property(self, spark: "SparkSession", table: str, key: str, value: str) -> None:
        """Set a property of a table that is there."""
        pair = f"{ddl.quoted(key)} = {ddl.quoted(value)}"
        spark.sql(f"ALTER TABLE {self.target(table)} SET TBLPROPERTIES ({pair})")

    def read(self, spark: "SparkSession", table: str) -> "DataFrame":
        """The table as it is now."""
        return spark.read.table(self.target(table))

    def write(self, writer: "DataFrameWriter", table: str) -> None:
        """Run a Delta writer against the table."""
        if self.conf.catalog_schema:
            writer.saveAsTable(self.target(table))
        else:
            writer.save(str(self.folder(table)))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only writer of a folder warehouse, or raise LockedError saying who is.

        Delta on a plain file system is safe within one JVM only. A catalog needs no lock: there
        Delta's own commit is one. The kernel drops the lock when its holder dies.
        """
        if self.conf.catalog_schema:
            yield
            return
        path = self.conf.folder / _LOCK
        with _opened(path) as file:
            _take(file.fileno(), path)
            file.truncate(0)
            file.write(json.dumps(_self()))
            file.flush()
            try:
                yield
            finally:
                file.truncate(0)

    def holder(self) -> str | None:
        """Who writes to a folder warehouse now, None when nobody does; takes no lock itself."""
        path = self.conf.folder / _LOCK
        try:
            # A lock taken only to look could make a writer fail: without a name, none is taken.
            if self.conf.catalog_schema or not path.stat().st_size:
                return None
            with path.open(encoding="utf-8") as file:
                fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _named(path)
        except OSError:
            return None
        return None


def _opened(path: Path) -> IO[str]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
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
    """What a holder wrote of itself; it may not have come to that yet."""
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        holder = {}
    return (
        f"process {holder.get('pid', 'unknown')} ({holder.get('command', 'unknown')}) of "
        f"{holder.get('user', 'unknown')} on {holder.get('host', 'this host')} since "
        f"{holder.get('since', 'now')}"
    )


def user() -> str:
    """Who runs this process, for who reads of it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's arbitrary uid has no name
        return f"uid {os.getuid()}"


def _self() -> dict[str, object]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "user": user(),
        # Only the subcommand: an argument may hold what is nobody else's business.
        "command": " ".join(["quotaflow", *sys.argv[1:2]]),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
