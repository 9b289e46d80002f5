"""Makes the archive of class_archive.py unless it is there: `python -m` runs this module."""

import os
import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from quotaflow.demo import class_archive, java_classes
from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.spark.jars import kafka_jars, locked

_WRITTEN_WITHIN_S = 120.0


def make(jars: Sequence[Path]) -> Path:
    """The archive for brokers of these jars; one broker runs for it unless it is there.

    Raises as LocalCluster does. A JVM that cannot write archives leaves none.
    """
    archive = class_archive.archive_of([java_classes.compiled(jars), *jars])
    with locked(archive), tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        if not archive.exists():
            made = Path(scratch, "made.jsa")
            _record(
                Path(scratch, "cluster"), (f"-XX:ArchiveClassesAtExit={made}", class_archive.QUIET)
            )
            if made.exists():
                made.rename(archive)
    return archive


def _record(folder: Path, recording: Sequence[str]) -> None:
    """Run a broker whose JVM writes its classes when it ends, which takes longer than to stop."""
    with LocalCluster(folder, nodes=1, java_options=recording) as cluster:
        os.kill(cluster.pids[1], signal.SIGTERM)
        deadline = time.monotonic() + _WRITTEN_WITHIN_S
        while cluster.pids and time.monotonic() < deadline:
            time.sleep(0.1)


if __name__ == "__main__":
    make(kafka_jars())
