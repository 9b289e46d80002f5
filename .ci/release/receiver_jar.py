"""Build the jar for brokers: the same bytes from the same sources and JDK.

    python .ci/release/receiver_jar.py dist

It has the telemetry receiver and the appenders of the request log. It is compiled for Java 17
against the Kafka jars of conf/kafka-jars.xml. Entries are sorted, and have one time and one mode.
"""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from quotaflow.pipelines.spark.jars import kafka_jars
from quotaflow.pipelines.spark.java import OLDEST, compiler

SOURCES = Path(__file__).parents[2] / "broker"
# For brokers before 4.2, by interfaces that are deprecated in these jars: built where it runs.
_OLDER = "TelemetryGate.java"
_PLUGINS = "org.apache.logging.log4j.core.config.plugins.processor.PluginProcessor"
"""Writes the file by which log4j2 finds the appender. javac warns that it claims no annotation."""
_MANIFEST = "META-INF/MANIFEST.MF"
_OLDEST_TIME = (1980, 1, 1, 0, 0, 0)
_REGULAR_FILE = 0o100644 << 16


def build(folder: Path, jars: Sequence[Path]) -> Path:
    """The jar in `folder`, compiled against these jars. Raises CalledProcessError."""
    path = folder / f"quotaflow-broker-{version('quotaflow')}.jar"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as classes:
        lint = ("--release", str(OLDEST), "-Xlint:all,-processing", "-Werror", "-g:source,lines")
        class_path = ":".join(map(str, jars))
        options = ("-processor", _PLUGINS, "-encoding", "UTF-8", "-cp", class_path, "-d", classes)
        sources = sorted(each for each in SOURCES.glob("*.java") if each.name != _OLDER)
        subprocess.run([*compiler(), *lint, *options, *sources], check=True)
        _pack(path, Path(classes))
    return path


def _pack(path: Path, classes: Path) -> None:
    files = {each.relative_to(classes).as_posix(): each for each in classes.rglob("*.*")}
    with ZipFile(path, "w") as jar:
        _add(jar, _MANIFEST, _manifest())
        for name in sorted(files):
            _add(jar, name, files[name].read_bytes())


def _manifest() -> bytes:
    lines = {
        "Manifest-Version": "1.0",
        "Implementation-Title": "quotaflow for brokers",
        "Implementation-Version": version("quotaflow"),
        "Bundle-License": "Apache-2.0",
    }
    return "".join(f"{key}: {value}\r\n" for key, value in lines.items()).encode() + b"\r\n"


def _add(jar: ZipFile, name: str, content: bytes) -> None:
    entry = ZipInfo(name, _OLDEST_TIME)
    entry.external_attr = _REGULAR_FILE
    entry.compress_type = ZIP_DEFLATED
    jar.writestr(entry, content)


def main() -> None:
    """Build it into the folder that is the first argument."""
    print(build(Path(sys.argv[1]), kafka_jars(print)))  # noqa: T201


if __name__ == "__main__":
    main()
