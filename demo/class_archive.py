"""An archive of the classes that a demo broker loads (AppCDS), so that each JVM starts sooner.

Three brokers start with 7 s of CPU instead of 12, and a console tool with 1 s instead of 2. The
archive is of one java and one class path; without one, JVMs start as ever. `make test` makes it
by recorded_archive.py.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from quotaflow.pipelines.spark.jars import cache_folder
from quotaflow.pipelines.spark.java import java

QUIET = "-Xlog:cds*=error"
"""An archive that does not fit is no warning on the output of a tool."""


def flags(class_path: Sequence[Path]) -> list[str]:
    """Flags of a JVM with this class path: to use its archive, if there is one."""
    archive = archive_of(class_path)
    return [f"-XX:SharedArchiveFile={archive}", QUIET] if archive.exists() else []


def archive_of(class_path: Sequence[Path]) -> Path:
    """Where the archive of this class path is or will be.

    The JVM refuses one of another java, or of jars with other names, sizes or times.
    """
    key = hashlib.sha256()
    for file in (java().resolve(), *class_path):
        stat = file.stat()
        key.update(f"{file} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return cache_folder() / "class-archives" / f"kafka-{key.hexdigest()[:12]}.jsa"
