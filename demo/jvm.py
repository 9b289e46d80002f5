"""Command lines of small JVMs with Kafka's jars, and how to run one to its end."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quotaflow.demo import class_archive
from quotaflow.demo.kafka_release import KafkaRelease
from quotaflow.pipelines.errors import KafkaError
from quotaflow.pipelines.spark.java import ENGLISH, java
from quotaflow.pipelines.spark.java_output import first_cause

BROKER_HEAP_MB = 256
BROKER_FLAGS = (f"-Xmx{BROKER_HEAP_MB}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
TOOL_FLAGS = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_QUIET = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""


@dataclass(frozen=True, slots=True)
class Jvm:
    """A class path, and the folder with the logging configuration of tools."""

    jars: Sequence[Path]
    classes: Path
    folder: Path

    @property
    def release(self) -> KafkaRelease:
        """The release of these jars."""
        return KafkaRelease(self.jars)

    def broker_command(self, flags: Sequence[str], *args: str) -> list[str]:
        """A broker that ends with the process at the other end of its standard input."""
        return self._command((*BROKER_FLAGS, *flags), "quotaflow.Tethered", "kafka.Kafka", *args)

    def tool_command(self, main_class: str, *args: str) -> list[str]:
        """A Kafka client or console tool that logs warnings only, to standard error."""
        conf = self.folder / "tool-log4j2.properties"
        if not conf.exists():
            conf.write_text(_QUIET, encoding="utf-8")
        return self._command(
            (*TOOL_FLAGS, f"-Dlog4j2.configurationFile=file:{conf}"), main_class, *args
        )

    def run(self, main_class: str, *args: str, timeout_s: float) -> str:
        """Run a tool to its end, at the latest that of this process. Returns its standard output.

        Raises KafkaError with the first cause by its output if it fails or takes longer.
        """
        name = main_class.rpartition(".")[2]
        ours, tether = _pipe()
        try:
            done = subprocess.run(
                self.tool_command("quotaflow.Tethered", main_class, *args),
                stdin=tether,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            printed = b"\n".join(filter(None, (error.stderr, error.stdout)))
            why = first_cause(printed.decode(errors="replace"))
            raise KafkaError(f"{name} did not end within {timeout_s:g} s: {why}") from error
        finally:
            os.close(tether)
            os.close(ours)
        if done.returncode != 0:
            why = first_cause(f"{done.stderr}\n{done.stdout}")
            raise KafkaError(f"{name} failed ({done.returncode}): {why}")
        return done.stdout

    def _command(self, flags: Sequence[str], main_class: str, *args: str) -> list[str]:
        files = (self.classes, *self.jars)
        class_path = ":".join(map(str, files))
        from_archive = class_archive.flags(files)
        return [str(java()), ENGLISH, *from_archive, *flags, "-cp", class_path, main_class, *args]


def _pipe() -> tuple[int, int]:
    """The end that this process keeps open, and the end that a child reads."""
    read_end, write_end = os.pipe()
    return write_end, read_end
