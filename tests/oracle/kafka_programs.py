"""Programs in Java that ask Kafka's own classes."""

import os
import subprocess
from pathlib import Path

from quotaflow.pipelines.spark.jars import kafka_jars
from quotaflow.pipelines.spark.java import SHORT_RUN, compiler, java

FOLDER = Path(__file__).parent
FLAGS = ("-Xlint:all,-path,-classfile", "-Werror", "-encoding", "UTF-8")


def compiled(name: str, folder: Path, package: str = "") -> list[str]:
    """Compile a program into a folder, and return the command that runs it."""
    class_path = _class_path(folder)
    places = ["-cp", class_path, "-d", folder, FOLDER / f"{name}.java"]
    subprocess.run([*compiler(), *FLAGS, *places], check=True)
    return _command(class_path, package + name)


def printed(name: str) -> list[str]:
    """The lines that a program of one file prints."""
    command = _command(_class_path(), str(FOLDER / f"{name}.java"))
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return output.splitlines()


def _class_path(*folders: Path) -> str:
    return os.pathsep.join(map(str, [*folders, *kafka_jars()]))


def _command(class_path: str, main: str) -> list[str]:
    return [java(), "-Xmx128m", *SHORT_RUN, "-cp", class_path, main]
