"""Java sources of quotaflow, compiled once per source text and class path to the user's cache."""

import hashlib
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path

from quotaflow.demo.kafka_release import KafkaRelease
from quotaflow.pipelines.errors import MissingToolError
from quotaflow.pipelines.spark.jars import cache_folder, locked
from quotaflow.pipelines.spark.java import OLDEST, compiler
from quotaflow.pipelines.spark.java_output import first_cause

_TETHER = ("quotaflow.demo", "Tethered.java")
_GATE = ("quotaflow.broker", "TelemetryGate.java")
_RECEIVER = (
    ("quotaflow.broker", "TelemetryReceiver.java"),
    ("quotaflow.broker", "RecordSender.java"),
    ("quotaflow.broker", "SenderCounts.java"),
    ("quotaflow.broker", "JmxBean.java"),
)


def compiled(jars: Sequence[Path]) -> Path:
    """The jar of classes that a demo broker needs beside Kafka's jars; javac runs once.

    A jar, because a class path with a folder of classes can have no archive (class_archive.py).
    """
    sources = _sources(jars)
    texts = {name: (files(package) / name).read_bytes() for package, name in sources}
    key = hashlib.sha256()
    for part in (*texts.values(), *(jar.name.encode() for jar in jars)):
        key.update(hashlib.sha256(part).digest())
    jar = cache_folder() / "classes" / f"{key.hexdigest()[:12]}.jar"
    with locked(jar):
        if not _is_intact(jar):
            _compile(jars, sources, jar)
    return jar


def _is_intact(jar: Path) -> bool:
    """Whether all is in the jar that was written, by the sums of its entries."""
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.testzip() is None
    except (FileNotFoundError, zipfile.BadZipFile):
        return False


def _sources(jars: Sequence[Path]) -> Sequence[tuple[str, str]]:
    """Package and name of each source: what lets clients push is another class before 4.2."""
    reporters = _RECEIVER if KafkaRelease(jars).loads_receiver else (_GATE,)
    return (_TETHER, *reporters)


def _compile(jars: Sequence[Path], named: Sequence[tuple[str, str]], jar: Path) -> None:
    with ExitStack() as stack:
        sources = [stack.enter_context(as_file(files(package) / name)) for package, name in named]
        scratch = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix=".classes-", dir=jar.parent))
        )
        classes = scratch / "classes"
        command: list[str | Path] = [
            *compiler(),
            *("--release", str(OLDEST), "-Xlint:all", "-Werror"),
            *("-cp", ":".join(map(str, jars)), "-d", classes),
            *sources,
        ]
        output = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=120, check=False
        )
        if output.returncode != 0:
            raise MissingToolError(f"javac refused our sources: {first_cause(output.stderr)}")
        with zipfile.ZipFile(scratch / jar.name, "w") as archive:
            for file in sorted(classes.rglob("*.class")):
                archive.write(file, file.relative_to(classes))
        (scratch / jar.name).rename(jar)
