"""Where Delta tables are: a folder, or a prefix of an object store. All IO on a store starts here.

On an object store delta-rs makes every commit: it creates a commit's file only if it does not exist
(If-None-Match on S3, its like on GCS and ADLS), and tries the next version after a conflict. Spark
neither reads nor writes there: rows reach it by `udfs.table_source`, so it needs no jars of clouds
and gets no credentials.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from quotaflow.pipelines.config import WarehouseSection
from quotaflow.pipelines.errors import DamagedError
from quotaflow.schemas.table import Table
from quotaflow.udfs.engine.rule import Files
from quotaflow.udfs.stores import ADLS, GCS, S3, Store, account_of, key_of

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyarrow.fs import FileSystem

    from quotaflow.udfs.table_files import Target

_LOG = "_delta_log"
_OF_VERSIONS = (".json", ".parquet")
"""Commits and checkpoints; a commit that is being written has another suffix."""
_DELTA_RS: Mapping[str, Mapping[str, str]] = {
    S3: {
        "access_key_id": "aws_access_key_id",
        "secret_access_key": "aws_secret_access_key",
        "session_token": "aws_session_token",
        "region": "aws_region",
        "endpoint": "aws_endpoint_url",
    },
    GCS: {},
    ADLS: {
        "account_key": "azure_storage_account_key",
        "sas_token": "azure_storage_sas_token",
        "tenant_id": "azure_storage_tenant_id",
        "client_id": "azure_storage_client_id",
        "client_secret": "azure_storage_client_secret",
        "endpoint": "azure_storage_endpoint",
    },
}
"""Scheme -> option of conf -> its name in delta-rs."""
_ALWAYS: Mapping[str, Mapping[str, str]] = {S3: {"aws_conditional_put": "etag"}}


@dataclass(frozen=True, slots=True)
class Place:
    """The tables below a folder's path, or below a store's URI."""

    root: str
    store: Store | None = None

    @classmethod
    def from_conf(cls, conf: WarehouseSection) -> "Place":
        """The place of conf's tables, which are not in a catalog. Raises as `object_store`."""
        return cls(root(conf), conf.object_store() if conf.is_store else None)

    @classmethod
    def local(cls, folder: Path) -> "Place":
        """The tables of a folder."""
        return cls(str(folder))

    def path(self, table: str) -> str:
        """The path or the URI of a table."""
        return f"{self.root}/{table}"

    @property
    def storage_options(self) -> dict[str, str] | None:
        """What delta-rs needs to know of the store; None for a folder."""
        return None if self.store is None else delta_rs_options(self.store)

    def open(self, table: str) -> "DeltaTable":
        """The newest version of a table, read without Spark: in a folder it takes milliseconds.

        Raises DamagedError for a folder's log that is broken, and other errors of Delta.
        """
        from deltalake import DeltaTable  # noqa: PLC0415  --help need not wait for it
        from deltalake.exceptions import DeltaError  # noqa: PLC0415  as above

        # A power cut can leave an empty commit, which delta-rs takes for one without rows.
        is_broken = self.store is None and self._has_empty_commit(table)
        if is_broken and (damaged := self._damage(table)):
            raise damaged
        try:
            return DeltaTable(self.path(table), storage_options=self.storage_options)
        except (DeltaError, OSError):
            if damaged := self._damage(table):
                raise damaged from None
            raise

    def _damage(self, table: str) -> DamagedError | None:
        """What is wrong with the log of a folder's table; None: nothing."""
        from quotaflow.pipelines.warehouse import damage  # noqa: PLC0415  only after an error

        return damage.of_log(self.root, table) if self.store is None else None

    def _has_empty_commit(self, table: str) -> bool:
        with suppress(OSError), os.scandir(f"{self.path(table)}/{_LOG}") as files:
            return any(f.name.endswith(".json") and not f.stat().st_size for f in files)
        return False

    def version(self, table: str) -> str:
        """Another text for each version of a table that exists; of a folder, by names alone."""
        if self.store is None:
            return max(self._logged(table), default="")
        return str(self.open(table).version())

    def is_made(self, table: str) -> bool:
        """Whether a table exists.

        A full disk or a crash can leave a log without a commit, which is no table yet.
        """
        if self.store is None:
            return any(self._logged(table))
        from deltalake import DeltaTable  # noqa: PLC0415  as above

        return DeltaTable.is_deltatable(self.path(table), self.storage_options)

    def files(self, table: Table, paths: Iterable[str], *, in_memory: bool = False) -> Files:
        """Files of a table as a relation of rules."""
        is_dated = bool(table.partitioning)
        return Files(tuple(paths), table.arrow, is_dated, self.store, in_memory)

    def target(self, table: Table, indexed: Iterable[str]) -> "Target":
        """Where tasks write files of a table; `indexed` columns get statistics."""
        from quotaflow.udfs.table_files import Target  # noqa: PLC0415  only writers need it

        path = self.path(table.name)
        return Target(table.name, path, table.arrow, tuple(indexed), self.store)

    def commits(self, table: str, first: int) -> Iterator[tuple[int, str]]:
        """The commits of a table's log from a version on, as text, in order."""
        for version in self._versions(table, first):
            yield version, self._read(f"{self.path(table)}/{_LOG}/{version:020d}.json")

    def disk_bytes(self, table: str) -> int:
        """Bytes of all data files, also those of older versions."""
        from pyarrow import fs  # noqa: PLC0415  its clients take a tenth of a second to import

        listed = self._client().get_file_info(
            fs.FileSelector(self._key(self.path(table)), recursive=True)
        )
        return sum(
            info.size
            for info in listed
            if info.is_file and info.extension == "parquet" and f"/{_LOG}/" not in info.path
        )

    def _logged(self, table: str) -> Iterator[str]:
        """The names of a folder's commits and checkpoints."""
        log = Path(self.path(table), _LOG)
        return (path.name for path in log.glob("[0-9]*") if path.suffix in _OF_VERSIONS)

    def _versions(self, table: str, first: int) -> list[int]:
        if self.store is None:
            paths = Path(self.path(table), _LOG).glob("*.json")
            numbers = [int(path.stem) for path in paths if path.stem.isdecimal()]
        else:
            # To list a log takes a request for a thousand files of all times.
            newest = self.open(table).version()
            numbers = list(range(first, newest + 1))
        return sorted(number for number in numbers if number >= first)

    def _read(self, path: str) -> str:
        if self.store is None:
            return Path(path).read_text(encoding="utf-8")
        with self._client().open_input_stream(self._key(path)) as stream:
            return bytes(stream.read()).decode()

    def _client(self) -> "FileSystem":
        if self.store is not None:
            return self.store.filesystem()
        from pyarrow import fs  # noqa: PLC0415  as above

        return fs.LocalFileSystem()

    def _key(self, path: str) -> str:
        return path if self.store is None else key_of(path)


def root(conf: WarehouseSection) -> str:
    """The absolute path of conf's folder, or its URI; not for tables in a catalog."""
    return str(conf.path) if conf.is_store else str(conf.folder.resolve())


def delta_rs_options(store: Store) -> dict[str, str]:
    """The options of a store by their names in delta-rs, which reads the environment for others."""
    parts = urlsplit(store.uri)
    scheme = parts.scheme
    named = {_DELTA_RS[scheme][name]: value for name, value in store.options}
    if scheme == ADLS and (endpoint := named.get("azure_storage_endpoint")):
        named["azure_storage_endpoint"] = (
            f"{endpoint.rstrip('/')}/{account_of(parts.hostname or '')}"
        )
    if any(value.startswith("http://") for name, value in store.options if name == "endpoint"):
        named["allow_http"] = "true"
    return named | dict(_ALWAYS.get(scheme, {}))
