"""The JDK on this machine: its path and version, and one clear error if it cannot be used."""

import os
import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

from quotaflow.pipelines.errors import MissingToolError

OLDEST = 17
_INSTALL = f"install a JDK {OLDEST} or 21 and put it on PATH, or set JAVA_HOME"


SHORT_RUN = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Flags of a JVM that runs for seconds: it compiles once, and collects with one thread."""
ENGLISH = "-Duser.language=en"
"""Kafka changes the case of names by the language of the JVM. In Turkish `classic` becomes
`CLASSİC`, which it does not know."""


def java() -> Path:
    """The `java` of JAVA_HOME, else of PATH, if it is 17 or newer (Spark 4 and Kafka 4 need that).

    Raises MissingToolError with the version found and what to install.
    """
    path = _find("java")
    if path is None:
        raise MissingToolError(f"no java found: {_INSTALL}")
    version = _version(path)
    if version < OLDEST:
        raise MissingToolError(f"{path} is Java {version}, at least {OLDEST} is needed: {_INSTALL}")
    return path


def javac() -> Path:
    """The compiler beside `java()`. A runtime without it cannot build the receiver."""
    beside = java().resolve().with_name("javac")
    path = beside if os.access(beside, os.X_OK) else _find("javac")
    if path is None:
        raise MissingToolError(f"{java()} has no javac beside it (a JRE?): {_INSTALL}")
    return path


def compiler() -> list[str]:
    """The command of `javac()`, with a JVM for a run of a second: half of the CPU time."""
    return [str(javac()), *(f"-J{flag}" for flag in SHORT_RUN)]


def _find(tool: str) -> Path | None:
    home = os.environ.get("JAVA_HOME")
    if home:
        tool_of_home = Path(home, "bin", tool)
        if not os.access(tool_of_home, os.X_OK):
            raise MissingToolError(f"JAVA_HOME={home} has no bin/{tool}: {_INSTALL}")
        return tool_of_home
    path = shutil.which(tool)
    return Path(path) if path else None


@lru_cache
def _version(path: Path) -> int:
    """The feature release: 17 of "17.0.15", 8 of "1.8.0_402"."""
    try:
        output = subprocess.run(
            [path, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingToolError(f"{path} does not run ({error}): {_INSTALL}") from error
    match = re.search(r'version "(?:1\.)?(\d+)', output.stderr + output.stdout)
    if match is None:
        raise MissingToolError(f"{path} -version names no version: {_INSTALL}")
    return int(match.group(1))
