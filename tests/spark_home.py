"""A SPARK_HOME of tests with an archive of the classes that a session loads (AppCDS).

With it a session costs 10 s of CPU up to its first rows instead of 16. A JVM takes an archive only
of jars with the same paths and times, so the jars of pyspark are linked into the user's cache, for
all environments. `make archives` makes it unless it is there, and `make demo` uses it too.
"""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from quotaflow.pipelines import config
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.spark.jars import cache_folder, locked
from quotaflow.pipelines.spark.java import java

LONG_LIVED = session.NO_CODEGEN | {"spark.driver.extraJavaOptions": "-XX:+UseSerialGC"}
"""For `spark.conf` of a JVM that many tests share. It lives long enough for both compilers:
with one, tests took half as long again."""
_OPTIONS = "SPARK_SUBMIT_OPTS"
_QUIET = "-Xlog:cds*=error"


def environment() -> dict[str, str]:
    """What a process needs to start Spark's JVM so; empty without an archive."""
    home = _home()
    archive = _archive(home)
    if not archive.exists():
        return {}
    return {"SPARK_HOME": str(home), _OPTIONS: f"-XX:SharedArchiveFile={archive} {_QUIET}"}


def make() -> None:
    """Make the folder and the archive; a JVM that cannot write one leaves none."""
    home = _home()
    with locked(home), tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        if not home.exists():
            _link(Path(scratch, "home"))
            Path(scratch, "home").rename(home)
        if not _archive(home).exists():
            made = Path(scratch, "made.jsa")
            own = {"SPARK_HOME": str(home), _OPTIONS: f"-XX:ArchiveClassesAtExit={made} {_QUIET}"}
            # The end of the output is that of the JVM, which writes the archive when it ends.
            command = [sys.executable, __file__, "record"]
            run = subprocess.run(command, env=os.environ | own, capture_output=True, check=False)
            if run.returncode:
                sys.stderr.buffer.write(run.stderr)
                run.check_returncode()
            if made.exists():
                made.rename(_archive(home))


def record() -> None:
    """Do what most tests with a session do: write and read Delta tables, also as a stream."""
    spark = session.get(config.SparkSection(conf=session.SHORT_LIVED))
    with tempfile.TemporaryDirectory() as scratch:
        table, copy = f"{scratch}/table", f"{scratch}/copy"
        rows = spark.createDataFrame([(n, str(n % 3)) for n in range(9)], "n INT, text STRING")
        for _ in range(2):
            rows.write.format("delta").mode("append").save(table)
        spark.read.format("delta").load(table).groupBy("text").count().toArrow()
        stream = spark.readStream.format("delta").load(table).writeStream.format("delta")
        stream.option("checkpointLocation", f"{scratch}/c").trigger(availableNow=True)
        stream.start(copy).awaitTermination()
        spark.sql(f"DELETE FROM delta.`{copy}` WHERE n < 3").collect()
    spark.stop()


def _home() -> Path:
    """Of one java and one Spark: a JVM refuses an archive of others."""
    stat = java().resolve().stat()
    text = f"{java().resolve()} {stat.st_size} {stat.st_mtime_ns} {version('pyspark')}"
    key = hashlib.sha256(text.encode()).hexdigest()[:12]
    return cache_folder() / f"spark-home-{key}"


def _archive(home: Path) -> Path:
    return home / "classes.jsa"


def _link(home: Path) -> None:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    pyspark = Path(spec.origin).parent
    shutil.copytree(pyspark / "bin", home / "bin")
    shutil.copytree(pyspark / "jars", home / "jars", copy_function=_link_file)


def _link_file(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # on another disk
        shutil.copy2(source, target)


def exports() -> str:
    """A line for a shell that exports `environment()`, as long as the archive is there."""
    given = shlex.join(f"{name}={value}" for name, value in environment().items())
    return f"[ ! -e {shlex.quote(str(_archive(_home())))} ] || export {given}"


if __name__ == "__main__":
    if sys.argv[1:]:
        record()
    else:
        make()
        sys.stdout.write(f"{exports()}\n")
