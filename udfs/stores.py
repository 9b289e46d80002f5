"""Object stores by their URI: file systems of Arrow, for tasks and for the driver.

A file of a Delta table never changes, so nothing here is cached between versions. The log is
written by delta-rs alone, which creates each commit only if its version does not exist.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

S3, GCS, ADLS = "s3", "gs", "abfss"
SCHEMES = (S3, GCS, ADLS)
_OF_S3 = {
    "access_key_id": "access_key",
    "secret_access_key": "secret_key",
    "session_token": "session_token",
    "region": "region",
}
_OF_AZURE = ("account_key", "sas_token", "tenant_id", "client_id", "client_secret")
_CONNECT_TIMEOUT_S, _REQUEST_TIMEOUT_S = 10, 60


@dataclass(frozen=True, slots=True)
class Store:
    """A prefix of an object store, and the options of its clients by names of conf.

    Options may be secrets: they are not in its text. What they do not say is the environment's.
    """

    uri: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def filesystem(self) -> "FileSystem":
        """Arrow's client of this store, made once in each process."""
        parts = urlsplit(self.uri)
        return _filesystem(parts.scheme, parts.hostname or "", self.options)


def account_of(host: str) -> str:
    """The storage account in the host of an Azure URI."""
    return host.partition(".")[0]


def key_of(uri: str) -> str:
    """The path of an object as Arrow's clients take it: bucket or container, then its key."""
    scheme, _, rest = uri.partition("://")
    bucket, slash, key = rest.partition("/")
    return f"{bucket.partition('@')[0] if scheme == ADLS else bucket}{slash}{key}"


@cache
def _filesystem(scheme: str, host: str, options: tuple[tuple[str, str], ...]) -> "FileSystem":
    from pyarrow import fs  # noqa: PLC0415  its clients take a tenth of a second to import

    given: Mapping[str, str] = dict(options)
    if scheme == S3:
        return fs.S3FileSystem(
            **_named(given, _OF_S3),
            **_endpoint(given),
            connect_timeout=_CONNECT_TIMEOUT_S,
            request_timeout=_REQUEST_TIMEOUT_S,
        )
    if scheme == GCS:
        return fs.GcsFileSystem()
    logins = _named(given, {name: name for name in _OF_AZURE})
    return fs.AzureFileSystem(account_of(host), **logins, **_azure_endpoint(given))


def _named(given: Mapping[str, str], names: Mapping[str, str]) -> dict[str, Any]:
    """The options that are given, by their names in Arrow."""
    return {arrows: given[name] for name, arrows in names.items() if name in given}


def _endpoint(given: Mapping[str, str]) -> dict[str, str]:
    """Another endpoint than the provider's own, such as that of MinIO."""
    if "endpoint" not in given:
        return {}
    parts = urlsplit(given["endpoint"])
    return {"endpoint_override": parts.netloc, "scheme": parts.scheme}


def _azure_endpoint(given: Mapping[str, str]) -> dict[str, str]:
    """An emulator, which has the account in its paths and no service of its own for folders."""
    if "endpoint" not in given:
        return {}
    parts = urlsplit(given["endpoint"])
    return {
        f"{service}_storage_{name}": value
        for service in ("blob", "dfs")
        for name, value in (("authority", parts.netloc), ("scheme", parts.scheme))
    }
