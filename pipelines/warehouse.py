"""Where the tables are: a folder or a catalog schema, and who may write to it now."""

import fcntl
import getpass
import json
import os
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import LockedError
from quotaflow.schemas import ddl
from quotaflow.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession


@dataclass(frozen=True, slots=True)
class Warehouse:
    """The tables of one conf: their names in SQL, and how frames are read from and written to them."""

    conf: config.Warehouse

    def folder(self, table: str) -> Path:
        """Where a table is on disk; only without a catalog."""
        return self.conf.folder.resolve() / table

    def target(self, table: str) -> str:
        """The table's name in Spark SQL."""
        if self.conf.catalog_schema:
            return f"{self.conf.catalog_schema}.{table}"
        return f"delta.`{self.folder(table)}`"

    def checkpoint(self, job: str) -> Path:
        """The folder of a query's checkpoint."""
        return self.conf.checkpoint_folder.resolve() / job

    def ensure(self, spark: "SparkSession", tables: Iterable[Table]) -> None:
        """Create the tables that are missing and add the columns that live ones lack."""
        for table in tables:
            if not self.exists(spark, table.name):
                spark.sql(ddl.create(table, self.target(table.name)))
                continue
            live = {f.name: f.dataType.simpleString() for f in self.read(spark, table.name).schema}
            change = ddl.difference(table, self.target(table.name), live)
            if change:
                spark.sql(change)

    def exists(self, spark: "SparkSession", table: str) -> bool:
        """Whether the table was ever made."""
        if self.conf.catalog_schema:
            return bool(spark.catalog.tableExists(self.target(table)))
        return (self.folder(table) / "_delta_log").is_dir()

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
        folder = self.conf.folder
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("a+", encoding="utf-8") as file:
            _take(file.fileno(), folder / ".lock")
            file.truncate(0)
            file.write(json.dumps(_holder()))
            file.flush()
            yield
            file.truncate(0)


def _take(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held = path.read_text(encoding="utf-8")
        who = json.loads(held) if held else {}
        raise LockedError(
            f"{path.parent} is being written by process {who.get('pid', 'unknown')} "
            f"({who.get('command', 'unknown')}) of {who.get('user', 'unknown')} on "
            f"{who.get('host', 'this host')} since {who.get('since', 'now')}: wait for it, stop it, "
            "or name another place with --set warehouse.path=FOLDER"
        ) from None


def _holder() -> dict[str, object]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "user": getpass.getuser(),
        # Only the subcommand: an argument may hold what is nobody else's business.
        "command": " ".join(["quotaflow", *sys.argv[1:2]]),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
