"""Sections of conf about the environment: places of tables and checkpoints, and Spark."""

import os
import re
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, field_validator, model_validator

from quotaflow.pipelines.config import object_store
from quotaflow.pipelines.config.base import LARGEST_MB, Seconds, Section, matches
from quotaflow.pipelines.config.secrets import SHOWN_SECRET
from quotaflow.pipelines.errors import ConfigError
from quotaflow.udfs.stores import Store


def expanded(path: str | Path, instead: str = "an absolute path") -> Path:
    """The path with the user's home folder in place of `~`.

    Raises ConfigError if the user has no home, as with a container's arbitrary uid: the message
    says to set HOME, or what to set instead.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ConfigError(
            f"{path} is in a home folder, and this user has none: set HOME, or {instead}"
        ) from None


def home() -> Path:
    """The folder for files that conf does not place elsewhere: $QUOTAFLOW_HOME or ~/.quotaflow."""
    return expanded(os.environ.get("QUOTAFLOW_HOME") or "~/.quotaflow", "QUOTAFLOW_HOME")


class WarehouseSection(Section):
    """The places of Delta tables (a folder, an object store, or a Unity Catalog schema) and of
    their checkpoints.
    """

    path: str | None = None
    """A folder of this machine, or a prefix of an object store, such as `s3://BUCKET/PREFIX`
    (docs/stores.md). null: `warehouse` in the folder of `QUOTAFLOW_HOME`. Not beside
    `catalog_schema`.
    """
    catalog_schema: (
        Annotated[str, matches(r"\w+\.\w+", "write catalog.schema, such as main.quotaflow")] | None
    ) = None
    """Catalog and schema of Unity Catalog, such as `main.quotaflow`, instead of a folder."""
    ledger_schema: (
        Annotated[str, matches(r"\w+\.\w+", "write catalog.schema, such as main.quotaflow_ledger")]
        | None
    ) = None
    """With a catalog: the schema of `plans`, `config_changes` and `feedback_locks`, such as
    `main.quotaflow_ledger`, which only the operator may change. null: `catalog_schema`.
    """
    # YAML reads an id of digits alone as a number.
    sql_warehouse: (
        Annotated[
            str,
            BeforeValidator(lambda value: str(value) if isinstance(value, int) else value),
            matches(r"[0-9a-f]+", "write the id of its connection details"),
        ]
        | None
    ) = None
    """With a catalog: id of a SQL warehouse of Databricks that answers what is read. Its login is
    that of Databricks' own tools: a profile, or `DATABRICKS_HOST` and its like. null: Spark reads.
    """
    checkpoints: str | None = None
    """Folder with a checkpoint for each query. null: `_checkpoints` among the tables; in a catalog
    the volume `checkpoints` of the schema. Needed beside an object store.
    """
    store: dict[str, str] = Field(default={})
    """Options of an object store's clients, such as `region` and `endpoint`; secrets by reference
    (docs/stores.md#logins).
    """
    query_memory_mb: Annotated[int, Field(ge=256, le=LARGEST_MB)] = 2_048
    """Memory in MiB of a query over a folder or an object store on this machine, at least 256; what
    exceeds it goes to a temporary folder.
    """
    query_timeout_s: Seconds = 600
    """Seconds after which a query is stopped. On a terminal `sql` and `show` stop after 60, if this
    is not given.
    """

    @field_validator("path")
    @classmethod
    def _a_place(cls, path: str | None) -> str | None:
        return object_store.checked_path(path) if path else path

    @field_validator("checkpoints")
    @classmethod
    def _a_folder(cls, checkpoints: str | None) -> str | None:
        if checkpoints and re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", checkpoints):
            raise ValueError(
                "must be a folder of this machine, or a volume: a lock there excludes a second run "
                "of the same query, and an object store has no such lock"
            )
        return checkpoints

    @model_validator(mode="after")
    def _one_place(self) -> "WarehouseSection":
        if self.path and self.catalog_schema:
            raise ValueError("path and catalog_schema exclude each other: name one")
        if self.ledger_schema and not self.catalog_schema:
            raise ValueError("ledger_schema is a part of a catalog: name catalog_schema, too")
        if self.sql_warehouse and not self.catalog_schema:
            raise ValueError("sql_warehouse reads a catalog: name catalog_schema, too")
        object_store.checked_options(self.path, self.store)
        if self.is_store and not self.checkpoints:
            raise ValueError(
                f"checkpoints is needed beside path {self.path}: a folder that lasts as long as "
                "the tables, such as /var/lib/quotaflow/checkpoints"
            )
        return self

    @property
    def is_store(self) -> bool:
        """Whether the tables are in an object store."""
        return object_store.is_store(self.path)

    @property
    def location(self) -> str:
        """Where the tables are if they are not in a catalog: a folder, or a URI."""
        return str(self.path) if self.is_store else str(self.folder)

    def object_store(self) -> Store:
        """The store of the tables. Raises ConfigError for a secret that cannot be looked up."""
        return object_store.store(str(self.path), self.store)

    @property
    def folder(self) -> Path:
        """The folder of the tables if they are in one."""
        if self.is_store:
            raise AssertionError(f"{self.path} is no folder")
        return expanded(self.path) if self.path else home() / "warehouse"

    @property
    def checkpoint_folder(self) -> Path:
        """The folder that holds one checkpoint per query; in a catalog the schema's own volume."""
        if self.checkpoints:
            return expanded(self.checkpoints)
        if self.catalog_schema:
            return Path("/Volumes", *self.catalog_schema.split("."), "checkpoints")
        return self.folder / "_checkpoints"

    @property
    def state_folder(self) -> Path:
        """The folder of locks, the stop file and pages: that of the tables, else of checkpoints."""
        is_elsewhere = self.catalog_schema or self.is_store
        return self.checkpoint_folder if is_elsewhere else self.folder


TIME_ZONE = "spark.sql.session.timeZone"


class SparkSection(Section):
    """Settings of a local session. On Databricks the cluster has its own settings."""

    driver_memory: Annotated[str, matches(r"\d+[mg]", "write 2g or 2048m")] = "2g"
    """Heap of the driver, which does all work in a local session: digits and `m` or `g`."""
    master: str = "local[*]"
    """Spark's master: all cores of this machine, or a cluster of your own (docs/scaling.md)."""
    conf: dict[str, str] = Field(default={})
    """Settings of Spark, which win over quotaflow's own; none with the name of a secret."""

    @field_validator("conf")
    @classmethod
    def _is_safe(cls, conf: dict[str, str]) -> dict[str, str]:
        shown = sorted(key for key in conf if SHOWN_SECRET.search(key))
        if shown:
            raise ValueError(
                f"{shown[0]} would be in the process list: put it into spark-defaults.conf"
            )
        if (zone := conf.get(TIME_ZONE, "UTC")) != "UTC":
            raise ValueError(f"{TIME_ZONE} is {zone}: rows are right in UTC alone, so leave it out")
        return conf
