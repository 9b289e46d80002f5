"""The SQL of views and answers for DuckDB, kept per user: to parse it takes longer than a query.

For texts that come with quotaflow, of which there are some hundred. A query of a user is translated
by `sql_dialects`, because each would leave a file.
"""

import hashlib
import tempfile
from contextlib import suppress
from functools import cache
from importlib import metadata, resources
from pathlib import Path

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.spark.jars import cache_folder
from quotaflow.pipelines.warehouse import sql_dialects


@cache
def in_duckdb(sql: str, within: frozenset[str] = frozenset()) -> str:
    """As `sql_dialects.in_duckdb`.

    A translation is kept below the user's cache folder under a hash of all that it comes from. A
    user without such a folder gets a new one each time. Raises sqlglot.errors.ParseError.
    """
    file = _file("\n".join([sql, *sorted(within)]), "sql")
    kept = _kept(file)
    if kept is not None:
        return kept
    text = sql_dialects.in_duckdb(sql, within)
    _keep(file, text)
    return text


@cache
def tables_in(sql: str) -> frozenset[str]:
    """As `sql_dialects.tables_in`, and kept in the same way. Raises sqlglot.errors.ParseError."""
    file = _file(sql, "tables")
    kept = _kept(file)
    if kept is not None:
        return frozenset(kept.split())
    names = sql_dialects.tables_in(sql)
    _keep(file, "\n".join(sorted(names)))
    return names


def _file(sql: str, kind: str) -> Path | None:
    with suppress(ConfigError):
        key = hashlib.sha256(_translator() + sql.encode()).hexdigest()
        return cache_folder() / "translations" / f"{key[:32]}.{kind}"
    return None


@cache
def _translator() -> bytes:
    """What decides on a file beside the text: our code, and the version of sqlglot."""
    folder = resources.files("quotaflow.pipelines.warehouse")
    code = [folder / name for name in ("sql_dialects.py", "kept_translations.py")]
    return b"".join(each.read_bytes() for each in code) + metadata.version("sqlglot").encode()


def _kept(file: Path | None) -> str | None:
    if file:
        with suppress(OSError):
            sha256, _, text = file.read_bytes().partition(b"\n")
            if sha256 == _sha256(text):
                return text.decode()
    return None


def _sha256(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()


def _keep(file: Path | None, text: str) -> None:
    """Write a file at once, with its sum: what is read later is all of it or nothing."""
    if file is None:
        return
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as scratch:
            made = Path(scratch, file.name)
            made.write_bytes(_sha256(text.encode()) + b"\n" + text.encode())
            made.rename(file)
