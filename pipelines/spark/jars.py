"""The jars of Spark and of the demo's brokers: fetched once, checked by sha256, kept per user.

<set>.xml lists the jars of a set, and <set>.sha256 their sums; the sets of quotaflow are in conf.
After the fetch a set is used without network. Its sums are checked at each use: to read 46 MB takes
0.05 to 0.2 s, and neither sizes nor times show every damage.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path

from quotaflow.pipelines import extras
from quotaflow.pipelines.config import expanded
from quotaflow.pipelines.errors import JarError, MissingToolError
from quotaflow.pipelines.spark.java import java
from quotaflow.udfs.counted import counted

Progress = Callable[[str], None]
_CONF = "quotaflow.conf"
_SPARK = "spark-jars"
_REPORTED_EACH = 10
_PROBLEMS = ":: problems summary ::"


def spark_jars(progress: Progress = lambda _: None) -> list[Path]:
    """The jars for Delta and Kafka that pyspark does not have, for `spark.jars`.

    Raises MissingToolError without pyspark, a JDK 17+ or, the first time, a network.
    """
    _pyspark_jars()
    return jar_set(_SPARK, files(_CONF), progress)


def kafka_jars(progress: Progress = lambda _: None) -> list[Path]:
    """The class path of a Kafka broker with its console tools. Raises as `spark_jars` does."""
    return jar_set("kafka-jars", files(_CONF), progress)


def cache_folder() -> Path:
    """The folder of this user's fetched and built files: in $XDG_CACHE_HOME or ~/.cache.

    By the XDG Base Directory Specification a relative folder is ignored, as an empty one is.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = base if os.path.isabs(base) else expanded("~/.cache", "XDG_CACHE_HOME")
    return Path(folder, "quotaflow")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a cache folder against other processes that fill it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(folder.name + ".lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def has_spark_jars() -> bool:
    """Whether `spark_jars` needs no network. Raises ConfigError."""
    return _is_intact(*_place(_SPARK, files(_CONF)))


def jar_set(name: str, listed: Traversable, progress: Progress = lambda _: None) -> list[Path]:
    """The jars of one set, whose two files are in the folder `listed`; raises as `spark_jars`."""
    java()
    folder, sums = _place(name, listed)
    if not _is_intact(folder, sums):
        with locked(folder):
            if not _is_intact(folder, sums):
                _fetch_into(folder, listed / f"{name}.xml", sums, progress)
    return [folder / jar for jar in sums]


def _place(name: str, listed: Traversable) -> tuple[Path, dict[str, str]]:
    """The folder of a set, and the sum of each of its jars."""
    text = (listed / f"{name}.sha256").read_text(encoding="utf-8")
    sums = {jar: sha256 for sha256, jar in (line.split() for line in text.splitlines())}
    key = hashlib.sha256(text.encode()).hexdigest()[:12]
    return cache_folder() / "jars" / f"{name}-{key}", sums


def _is_intact(folder: Path, sums: dict[str, str]) -> bool:
    try:
        _check(folder, sums)
    except (FileNotFoundError, JarError):
        return False
    return True


def _fetch_into(
    folder: Path, module: Traversable, sums: dict[str, str], progress: Progress
) -> None:
    """Fill a temporary folder, then rename it, so that a set is there completely or not at all."""
    name = module.name.removesuffix(".xml")
    for left_over in folder.parent.glob(f".{name}-*"):
        shutil.rmtree(left_over)
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder.parent) as scratch:
        fresh = Path(scratch, "jars")
        _run_ivy(module, Path(scratch), len(sums), progress)
        _check(fresh, sums)
        if folder.exists():
            folder.rename(Path(scratch, "damaged"))
        fresh.rename(folder)


def _run_ivy(module: Traversable, scratch: Path, total: int, progress: Progress) -> None:
    name = module.name.removesuffix(".xml")
    progress(f"fetching {name}, once: 0 of {total}")
    with (
        as_file(files(_CONF) / "ivysettings.xml") as settings,
        as_file(module) as listed,
    ):
        command: list[str | Path] = [
            *(java(), "-Xmx128m", f"-Divy.default.ivy.user.dir={scratch / 'ivy'}"),
            *("-cp", next(_pyspark_jars().glob("ivy-*.jar")), "org.apache.ivy.Main"),
            *("-settings", settings, "-cache", scratch / "ivy", "-ivy", listed),
            *("-retrieve", f"{scratch}/jars/[artifact]-[revision](-[classifier]).[ext]"),
        ]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as ivy:
            try:
                lines = _follow(ivy, name, total, progress)
            finally:
                ivy.kill()
    if ivy.returncode != 0:
        raise MissingToolError(_cannot_fetch(name, total, lines))


def _follow(ivy: subprocess.Popen[str], name: str, total: int, progress: Progress) -> list[str]:
    lines, fetched = [], 0
    for line in ivy.stdout or ():
        lines.append(line.strip())
        if "[SUCCESSFUL" in line:
            fetched += 1
            if fetched % _REPORTED_EACH == 0 or fetched == total:
                progress(f"fetching {name}, once: {fetched} of {total}")
    ivy.wait()
    return lines


def _cannot_fetch(name: str, total: int, lines: list[str]) -> str:
    start = lines.index(_PROBLEMS) if _PROBLEMS in lines else 0
    from quotaflow.pipelines.spark.java_output import first_cause  # noqa: PLC0415  only here

    why = first_cause("\n".join(line for line in lines[start:] if not line.startswith("::")))
    return (
        f"cannot fetch {name} ({counted(total, 'jar')}, needed once; later runs work offline): "
        f"{why}. Connect this machine to Maven Central (JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=... "
        f"for a proxy), or copy {cache_folder() / 'jars'} from a machine that has it"
    )


def _check(folder: Path, sums: dict[str, str]) -> None:
    for jar, expected in sums.items():
        with (folder / jar).open("rb") as content:
            actual = hashlib.file_digest(content, "sha256").hexdigest()
        if actual != expected:
            raise JarError(
                f"{jar} is not the jar that was tested: sha256 expected {expected}, "
                f"found {actual}; nothing was kept. "
                "A proxy may have answered in Maven Central's place"
            )


def _pyspark_jars() -> Path:
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise MissingToolError(f"pyspark is not installed: {extras.install('local')}")
    return Path(spec.submodule_search_locations[0], "jars")
