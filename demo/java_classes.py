"""Our own Java sources, compiled once per source text and class path into the user's cache."""

import hashlib
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

from quotaflow.pipelines.errors import MissingToolError
from quotaflow.pipelines.jars import cache_folder, locked
from quotaflow.pipelines.java import OLDEST, javac

_SOURCES = (("quotaflow.demo", "Tethered.java"), ("quotaflow.broker", "TelemetryReceiver.java"))


def compiled(jars: Sequence[Path]) -> Path:
    """The folder of classes a demo broker needs beside Kafka's jars; javac runs the first time."""
    texts = {name: (files(package) / name).read_bytes() for package, name in _SOURCES}
    key = hashlib.sha256()
    for part in (*texts.values(), *(jar.name.encode() for jar in jars)):
        key.update(hashlib.sha256(part).digest())
    folder = cache_folder() / "classes" / key.hexdigest()[:12]
    with locked(folder):
        if not folder.exists():
            _compile(jars, folder)
    return folder


def _compile(jars: Sequence[Path], folder: Path) -> None:
    class_path = ":".join(map(str, jars))
    with tempfile.TemporaryDirectory(prefix=".classes-", dir=folder.parent) as scratch:
        for package, name in _SOURCES:
            with as_file(files(package) / name) as source:
                _javac("-cp", class_path, "-d", f"{scratch}/classes", str(source))
        Path(scratch, "classes").rename(folder)


def _javac(*args: str) -> None:
    command = [str(javac()), "--release", str(OLDEST), "-Xlint:all", "-Werror", *args]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if said.returncode != 0:
        raise MissingToolError(f"javac refused {args[-1]}: {said.stderr.strip()[:2000]}")
