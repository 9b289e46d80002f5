"""`warehouse.path`: a folder, or a prefix of an object store; and the options of its clients."""

import difflib
import os
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from quotaflow.pipelines.config.secrets import REFERENCES, look_up
from quotaflow.udfs.stores import ADLS, GCS, S3, SCHEMES, Store

SECRET_OPTIONS = ("secret_access_key", "session_token", "account_key", "sas_token", "client_secret")
OPTIONS: Mapping[str, tuple[str, ...]] = {
    S3: ("access_key_id", "secret_access_key", "session_token", "region", "endpoint"),
    GCS: (),
    ADLS: ("account_key", "sas_token", "tenant_id", "client_id", "client_secret", "endpoint"),
}
"""Scheme -> the options that conf may set. All others are the environment's."""
_OTHER_NAMES = {
    **{"s3a": S3, "s3n": S3, "gcs": GCS, "abfs": ADLS, "wasb": ADLS, "wasbs": ADLS},
    **{"az": ADLS, "adl": ADLS, "azure": ADLS},
}
_FORMS = {
    S3: "s3://BUCKET/PREFIX",
    GCS: "gs://BUCKET/PREFIX",
    ADLS: "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX",
}
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,221}")
_ACCOUNT = re.compile(
    r"[a-z0-9]{3,24}\.dfs\.core\.(windows\.net|usgovcloudapi\.net|chinacloudapi\.cn)"
)
_KEY = re.compile(r"[A-Za-z0-9!_.*'()=@+,/-]+")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(/*)(.*)", re.DOTALL)
_ADDRESSES = (
    (
        re.compile(r"https?://(\w+)\.(?:blob|dfs)\.(core\.[\w.]+)/([^/]+)/(.+)"),
        ADLS,
        r"abfss://\3@\1.dfs.\2/\4",
    ),
    (re.compile(r"https?://([\w.-]+)\.s3[.-][\w.-]*amazonaws\.com/(.+)"), S3, r"s3://\1/\2"),
    (re.compile(r"https?://s3[.-][\w.-]*amazonaws\.com/([^/]+)/(.+)"), S3, r"s3://\1/\2"),
    (re.compile(r"https?://storage\.googleapis\.com/([^/]+)/(.+)"), GCS, r"gs://\1/\2"),
    # A store by this scheme whose host is the one for blobs.
    (
        re.compile(r"abfss://([^@/]+)@(\w+)\.blob\.([\w.]+)/(.+)"),
        ADLS,
        r"abfss://\1@\2.dfs.\3/\4",
    ),
)
"""Addresses of the web, and what is written for them."""
_ENVIRONMENT = {
    ADLS: {"account_key": "AZURE_STORAGE_ACCOUNT_KEY", "sas_token": "AZURE_STORAGE_SAS_TOKEN"},
    S3: {"endpoint": "AWS_ENDPOINT_URL", "region": "AWS_REGION"},
}
"""Variables that one client of a store reads and the other does not."""


def is_store(path: str | None) -> bool:
    """Whether a path is that of an object store."""
    return bool(path) and urlsplit(str(path)).scheme in SCHEMES


def checked_path(path: str) -> str:
    """A path without a slash at its end. Raises ValueError with the nearest right one."""
    if path == "/Volumes" or path.startswith("/Volumes/"):
        raise ValueError(
            "is a volume of Databricks, where no table can be: name warehouse.catalog_schema, and "
            "let checkpoints alone be in a volume"
        )
    matched = _SCHEME.fullmatch(path)
    # One letter may be a drive, and a folder may have a colon further down.
    if matched is None or (not matched[2] and matched[1].lower() not in {*SCHEMES, *_OTHER_NAMES}):
        return path
    scheme, slashes, rest = matched.groups()
    if (named := _named(path)) is not None:
        raise ValueError(f"write {_checked_store(*named)}")
    right = _OTHER_NAMES.get(scheme.lower(), scheme.lower())
    if right not in SCHEMES:
        if not slashes:
            return path
        near = difflib.get_close_matches(right, SCHEMES, n=1)
        forms = _FORMS[near[0]] if near else ", ".join(_FORMS.values())
        raise ValueError(f"is no folder and no object store: write a folder, or {forms}")
    if scheme != right or slashes != "//":
        spelled = f"{right}://{_of_azure(rest.lstrip('/')) if right == ADLS else rest.lstrip('/')}"
        # What is proposed can be written, or the error says what is wrong with it.
        raise ValueError(f"write {_checked_store(right, spelled.rstrip('/'))}")
    return _checked_store(right, path.rstrip("/"))


def _of_azure(rest: str) -> str:
    """A path of Azure as abfss has it: the account's host for Data Lake, not the one for blobs.

    A driver of another library takes a container alone, and the account from its options.
    """
    host, slash, key = rest.partition("/")
    container, at, account = host.partition("@")
    if not at:
        form = f"abfss://{container}@ACCOUNT.dfs.core.windows.net/{key or 'PREFIX'}"
        raise ValueError(f"names no storage account: write {form}, with the account for ACCOUNT")
    if "." not in account:
        account = f"{account}.dfs.core.windows.net"
    return f"{container}@{account.replace('.blob.', '.dfs.', 1)}{slash}{key}"


def _named(path: str) -> tuple[str, str] | None:
    """The store and the path of an address of the web, if it is one of a store's."""
    for pattern, scheme, form in _ADDRESSES:
        if matched := pattern.fullmatch(path):
            return scheme, matched.expand(form).rstrip("/")
    return None


def _checked_store(scheme: str, uri: str) -> str:
    host, _, key = uri.partition("://")[2].partition("/")
    bucket, at, account = host.partition("@")
    is_host = bool(_BUCKET.fullmatch(bucket)) and bool(at) == (scheme == ADLS)
    if not is_host or (at and not _ACCOUNT.fullmatch(account)):
        raise ValueError(f"has no bucket that can be: write {_FORMS[scheme]}")
    if not key or not _KEY.fullmatch(key) or {"", ".", ".."} & set(key.split("/")):
        raise ValueError(
            f"needs a prefix of letters, digits and -_.=/ below the bucket: write "
            f"{scheme}://{host}/quotaflow"
        )
    return uri


def checked_options(path: str | None, options: Mapping[str, str]) -> None:
    """Raise ValueError for an option that the store does not have, or a secret in plain text."""
    if not options:
        return
    if not is_store(path):
        raise ValueError("store has options of an object store: path names none")
    allowed = OPTIONS[urlsplit(str(path)).scheme]
    for name, value in options.items():
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, n=1, cutoff=0.5)
            listed = ", ".join(allowed) or "none: the environment has the login"
            end = f"did you mean {near[0]}?" if near else f"known: {listed}"
            raise ValueError(f"store.{name} is no option of this store ({end})")
        if name in SECRET_OPTIONS and not value.startswith(REFERENCES):
            raise ValueError(
                f"store.{name} holds a secret in plain text: write env:NAME or secret:scope/key"
            )
        if name == "endpoint" and not re.fullmatch(r"https?://[\w.:\[\]-]+/?", value):
            raise ValueError("store.endpoint: write https://HOST or https://HOST:PORT")


def store(path: str, options: Mapping[str, str]) -> Store:
    """The store of a path, with its secrets looked up. Raises ConfigError that names a reference.

    Variables that delta-rs knows and Arrow does not, or the other way round, are options of both.
    """
    given = {name: look_up(f"warehouse.store.{name}", value) for name, value in options.items()}
    for name, variable in _ENVIRONMENT.get(urlsplit(path).scheme, {}).items():
        if name not in given and os.environ.get(variable):
            given[name] = os.environ[variable]
    return Store(path, tuple(sorted(given.items())))
