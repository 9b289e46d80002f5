"""Views in DuckDB's SQL, kept per user: to translate one takes longer than most queries."""

import hashlib
import tempfile
from contextlib import suppress
from functools import cache
from importlib import metadata, resources
from pathlib import Path

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.spark.jars import cache_folder
from quotaflow.pipelines.warehouse import sql_dialects, views


def in_duckdb(name: str) -> str:
    """The query of a view as DuckDB reads it.

    A translation is kept below the user's cache folder under a hash of all that it comes from. A
    user without such a folder gets a new one each time. Raises sqlglot.errors.ParseError.
    """
    return _translated(views.load()[name].sql)


@cache
def _translated(sql: str) -> str:
    file = _file(sql)
    if file:
        with suppress(OSError, UnicodeDecodeError):
            return file.read_text(encoding="utf-8")
    text = sql_dialects.in_duckdb(sql)
    if file:
        with suppress(OSError):
            _write(file, text)
    return text


def _file(sql: str) -> Path | None:
    with suppress(ConfigError):
        key = hashlib.sha256(_translator() + sql.encode()).hexdigest()
        return cache_folder() / "views" / f"{key[:32]}.sql"
    return None


@cache
def _translator() -> bytes:
    """What decides on a translation beside the view: our code, and the version of sqlglot."""
    code = resources.files("quotaflow.pipelines.warehouse").joinpath("sql_dialects.py")
    return code.read_bytes() + metadata.version("sqlglot").encode()


def _write(file: Path, text: str) -> None:
    """Write a file at once: another process reads all of it or nothing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as scratch:
        made = Path(scratch, file.name)
        made.write_text(text, encoding="utf-8")
        made.rename(file)
