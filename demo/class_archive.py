"""An archive of the classes that a demo broker loads (AppCDS), so that each JVM starts sooner.

Three brokers start with 7 s of CPU instead of 12, and a console tool with 1 s instead of 2. The
archive is of one java and one class path; without one, JVMs start as ever. `make test`
runs this module, which makes the archive unless it is there.
"""

import hashlib
import os
import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from quotaflow.demo import java_classes
from quotaflow.pipelines.spark.jars import cache_folder, kafka_jars, locked
from quotaflow.pipelines.spark.java import java

_WRITTEN_WITHIN_S = 120.0
_QUIET = "-Xlog:cds*=error"
"""An archive that does not fit is no warning on the output of a tool."""


def flags(class_path: Sequence[Path]) -> list[str]:
    """Flags of a JVM with this class path: to use its archive, if there is one."""
    archive = archive_of(class_path)
    return [f"-XX:SharedArchiveFile={archive}", _QUIET] if archive.exists() else []


def make(jars: Sequence[Path]) -> Path:
    """The archive for brokers of these jars; one broker runs for it unless it is there.

    Raises as LocalCluster does. A JVM that cannot write archives leaves none.
    """
    archive = archive_of([java_classes.compiled(jars), *jars])
    with locked(archive), tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        if not archive.exists():
            made = Path(scratch, "made.jsa")
            _record(Path(scratch, "cluster"), (f"-XX:ArchiveClassesAtExit={made}", _QUIET))
            if made.exists():
                made.rename(archive)
    return archive


def _record(folder: Path, recording: Sequence[str]) -> None:
    """Run a broker whose JVM writes its classes when it ends, which takes longer than to stop."""
    from quotaflow.demo.cluster import LocalCluster  # noqa: PLC0415  it uses archives itself

    with LocalCluster(folder, nodes=1, java_options=recording) as cluster:
        os.kill(cluster.pids[1], signal.SIGTERM)
        deadline = time.monotonic() + _WRITTEN_WITHIN_S
        while cluster.pids and time.monotonic() < deadline:
            time.sleep(0.1)


def archive_of(class_path: Sequence[Path]) -> Path:
    """Where the archive of this class path is or will be.

    The JVM refuses one of another java, or of jars with other names, sizes or times.
    """
    key = hashlib.sha256()
    for file in (java().resolve(), *class_path):
        stat = file.stat()
        key.update(f"{file} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return cache_folder() / "class-archives" / f"kafka-{key.hexdigest()[:12]}.jsa"


if __name__ == "__main__":
    make(kafka_jars())
