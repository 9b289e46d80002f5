"""Java sources of quotaflow, compiled once per source text and class path to the user's cache."""

import hashlib
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path

from quotaflow.pipelines.errors import MissingToolError
from quotaflow.pipelines.spark.jars import cache_folder, locked
from quotaflow.pipelines.spark.java import OLDEST, javac

_SOURCES = (
    ("quotaflow.demo", "Tethered.java"),
    ("quotaflow.broker", "TelemetryReceiver.java"),
    ("quotaflow.broker", "TelemetrySender.java"),
)


def compiled(jars: Sequence[Path]) -> Path:
    """The jar of classes that a demo broker needs beside Kafka's jars; javac runs once.

    A jar, because a class path with a folder of classes can have no archive (class_archive.py).
    """
    texts = {name: (files(package) / name).read_bytes() for package, name in _SOURCES}
    key = hashlib.sha256()
    for part in (*texts.values(), *(jar.name.encode() for jar in jars)):
        key.update(hashlib.sha256(part).digest())
    jar = cache_folder() / "classes" / f"{key.hexdigest()[:12]}.jar"
    with locked(jar):
        if not jar.exists():
            _compile(jars, jar)
    return jar


def _compile(jars: Sequence[Path], jar: Path) -> None:
    with ExitStack() as stack:
        sources = [
            stack.enter_context(as_file(files(package) / name)) for package, name in _SOURCES
        ]
        scratch = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix=".classes-", dir=jar.parent))
        )
        classes = scratch / "classes"
        command: list[str | Path] = [
            javac(),
            *("--release", str(OLDEST), "-Xlint:all", "-Werror"),
            *("-cp", ":".join(map(str, jars)), "-d", classes),
            *sources,
        ]
        output = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=120, check=False
        )
        if output.returncode != 0:
            raise MissingToolError(f"javac refused our sources: {output.stderr.strip()[:2000]}")
        with zipfile.ZipFile(scratch / jar.name, "w") as archive:
            for file in sorted(classes.rglob("*.class")):
                archive.write(file, file.relative_to(classes))
        (scratch / jar.name).rename(jar)
