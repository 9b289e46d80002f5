"""The only place that builds a SparkSession: of Databricks, of Spark Connect, or a local one."""

import atexit
import logging
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING

from quotaflow.pipelines.config import SparkSection
from quotaflow.pipelines.config.runtime import TIME_ZONE
from quotaflow.pipelines.errors import MissingToolError
from quotaflow.pipelines.spark import jars, worker_archive
from quotaflow.pipelines.spark.spark_errors import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STDOUT, _STDERR = 1, 2
_REDACTED = "(?i)secret|password|token|access[.]?key|jaas|user[.]info|credential|keystore[.]key"

# The number of tasks in which VACUUM lists files. The default of 10000 takes a minute for a small
# table.
_LISTS_IN = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_PAGE_BYTES = 2 * 1024 * 1024 - 16
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
ONE_COMPILER = {_JAVA_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"}
"""For `spark.conf`: a JVM that warms up sooner, and is slower once warm."""
NO_CODEGEN = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For `spark.conf` of many queries over few rows, each of which would be compiled."""
SHORT_LIVED = ONE_COMPILER | NO_CODEGEN
"""For `spark.conf` of runs of a minute or two, in which compiling costs more than it saves: they
take half the time. Longer runs are slower."""

_WITHOUT_UI = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Spark keeps a thousand executions with the text of each plan for its UI, even if that is off.
    # Memory that grew from one micro-batch to the next was mostly this.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.ui.dagGraph.retainedRootRDDs": "20",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.sql.ui.explainMode": "simple",
}
"""Settings of a local session: its UI is off, so Spark need not keep data for it."""

_ROWS_AT_ONCE = "spark.sql.execution.arrow.maxRecordsPerBatch"
_EVERYWHERE = {
    TIME_ZONE: "UTC",
    _ROWS_AT_ONCE: "1000",
    # INT96, the default, has no bounds in Parquet, and its nanoseconds are another type elsewhere.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
_ON_THIS_MACHINE = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
_JARS = "spark.jars"
_PYTHON, _PY_FILES = "spark.pyspark.python", "spark.submit.pyFiles"


def get(conf: SparkSection, progress: Callable[[str], None] = lambda _: None) -> "SparkSession":
    """The session of all jobs: the running one on Databricks or Connect, else a local one.

    Raises MissingToolError without a JDK 17+, pyspark or the jars, or if the user has no name.
    """
    # PySpark logs the whole stack trace of a wrong query, and its error is one line here.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    return _own(conf, progress) if owner() is None else _running()


def opener(
    conf: SparkSection, progress: Callable[[str], None] = lambda _: None
) -> "Callable[[], SparkSession]":
    """A function that opens the session at its first call, and returns it at later ones.

    For what needs none as long as tables are in a folder. Raises as `get`.
    """
    return cache(partial(get, conf, progress))


def owner() -> str | None:
    """Which running session jobs use, in words; None for a local one, which needs Java."""
    if "DATABRICKS_RUNTIME_VERSION" in os.environ:
        return "Databricks' own"
    if "SPARK_REMOTE" in os.environ:
        # Parameters of the address may be a token.
        address = os.environ["SPARK_REMOTE"].removeprefix("sc://").partition("/")[0]
        return f"Spark Connect at {address}"
    return None


def one_compiler(conf: SparkSection) -> SparkSection:
    """Conf for a run over few records (`ONE_COMPILER`); settings in conf itself win."""
    return conf.model_copy(update={"conf": ONE_COMPILER | conf.conf})


def short_lived(conf: SparkSection) -> SparkSection:
    """Conf for a run of a minute or two; settings in conf itself win."""
    return conf.model_copy(update={"conf": SHORT_LIVED | conf.conf})


def _running() -> "SparkSession":
    from pyspark.sql import SparkSession  # noqa: PLC0415  pyspark is not a base dependency

    spark = SparkSession.builder.getOrCreate()
    if "SPARK_REMOTE" in os.environ:
        # When a process ends, pyspark asks the server to clear a cache of models, and asks a server
        # that went away for ten minutes. A closed client asks nothing.
        atexit.register(spark.client.close)
    spark.conf.set(TIME_ZONE, "UTC")
    # Serverless compute refuses most settings, and then has its own batch sizes.
    with suppress(*spark_errors()):
        spark.conf.set(_ROWS_AT_ONCE, _EVERYWHERE[_ROWS_AT_ONCE])
    return spark


def _own(conf: SparkSection, progress: Callable[[str], None]) -> "SparkSession":
    _check_user()
    given = settings(conf, progress)
    from pyspark import SparkContext  # noqa: PLC0415  after the check that names the extra
    from pyspark.sql import SparkSession  # noqa: PLC0415

    # Workers on this machine must run this interpreter, which has quotaflow, not the python3 on
    # PATH. For other machines conf names the interpreter.
    os.environ["PYSPARK_PYTHON"] = given.get(_PYTHON, sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # py4j logs stack traces of errors that are one line here, some on the root logger.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)
    builder = SparkSession.builder.master(conf.master).appName("quotaflow")
    for key, value in given.items():
        builder = builder.config(key, value)
    # Once a JVM runs, no process starts here, and another thread may print meanwhile.
    is_running = SparkContext._active_spark_context is not None
    if not is_running:
        progress("starting Spark")
    output = nullcontext() if is_running else _output_to_stderr()
    with output, ThreadPoolExecutor(1, "spark-start") as other:
        # If Ctrl-C interrupts pyspark while its JVM starts, pyspark deletes a file that the JVM is
        # about to write, and the JVM goes on alone. Another thread is not interrupted (leaving this
        # block waits for it), and in it pyspark does not replace the handler of SIGINT.
        return other.submit(builder.getOrCreate).result()


def _check_user() -> None:
    """Raise MissingToolError if the user has no name: Hadoop ends the JVM with a stack trace."""
    uid = os.getuid()
    try:
        pwd.getpwuid(uid)
    except KeyError:
        raise MissingToolError(
            f"Spark needs a user with a name, and uid {uid} has none: give it a line in /etc/passwd"
        ) from None


@contextmanager
def _output_to_stderr() -> Iterator[None]:
    """Send the stdout of processes started within to stderr: Delta's VACUUM prints to it.

    On a terminal both go through a filter that leaves out a warning of each JVM that Spark starts,
    about which nobody can do anything.
    """
    sys.stdout.flush()
    before = {stream: os.dup(stream) for stream in (_STDOUT, _STDERR)}
    end = _filtered() if os.isatty(_STDERR) else None
    for stream in before:
        os.dup2(_STDERR if end is None else end, stream)
    try:
        yield
    finally:
        for stream, ours in before.items():
            os.dup2(ours, stream)
            os.close(ours)
        if end is not None:
            os.close(end)


def _filtered() -> int | None:
    """A pipe to stderr without that warning; None where there is no filter.

    The filter ends when the last process that has the pipe does. Ctrl-C does not reach it, because
    it is a session of its own.
    """
    sed = shutil.which("sed")
    if sed is None:
        return None
    mine, theirs = os.pipe()
    command = [sed, "-u", "/^WARNING: Using incubator modules: /d"]
    subprocess.Popen(command, stdin=mine, stdout=_STDERR, start_new_session=True)
    os.close(mine)
    return theirs


@contextmanager
def named(spark: "SparkSession", name: str) -> Iterator[None]:
    """Give the statements of this thread a name by which another thread can cancel them.

    Only a classic session has job groups. Its tags are those of one thread.
    """
    if _is_remote():
        spark.addTag(name)
    else:
        spark.sparkContext.setJobGroup(name, "a query of quotaflow")
    try:
        yield
    finally:
        if _is_remote():
            spark.removeTag(name)
        else:
            spark.sparkContext.setLocalProperty("spark.jobGroup.id", "")


def cancel(spark: "SparkSession", name: str) -> None:
    """End the statements that have a name, from any thread."""
    if _is_remote():
        spark.interruptTag(name)
    else:
        spark.sparkContext.cancelJobGroup(name)


def _is_remote() -> bool:
    from pyspark.sql.utils import is_remote  # noqa: PLC0415  pyspark is not a base dependency

    return bool(is_remote())


def settings(
    conf: SparkSection, progress: Callable[[str], None] = lambda _: None
) -> dict[str, str]:
    """The settings of a local session; those of `spark.conf` win. Raises as `get`.

    With a master other than local[...], Spark sends the worker archive to the workers.
    """
    paths = jars.spark_jars(progress)
    ours = _EVERYWHERE | _basics(conf) | _WITHOUT_UI
    if conf.master.startswith("local"):
        cores = str(os.cpu_count() or 2)
        ours |= _ON_THIS_MACHINE | {"spark.sql.shuffle.partitions": cores, _LISTS_IN: cores}
    java_options = [ours[_JAVA_OPTIONS], conf.conf.get(_JAVA_OPTIONS, "")]
    given = ours | conf.conf | {_JAVA_OPTIONS: " ".join(java_options).strip()}
    given[_JARS] = ",".join([*map(str, paths), *filter(None, [conf.conf.get(_JARS)])])
    if not conf.master.startswith("local"):
        given[_PY_FILES] = ",".join(
            filter(None, [conf.conf.get(_PY_FILES), str(worker_archive.package())])
        )
    return given


def _basics(conf: SparkSection) -> dict[str, str]:
    scratch = tempfile.gettempdir()
    logging_conf = resources.files("quotaflow.conf") / "log4j2-spark.properties"
    return {
        # A query that is stopped within a batch searches the batch's error for the interrupt with a
        # regular expression that needs a stack frame per character: 4 MB were too small.
        # Java's own clock too: times of log lines, and of what a library prints.
        _JAVA_OPTIONS: (
            f'"-Dlog4j2.configurationFile=file:{logging_conf}" -Xss32m -Duser.timezone=UTC'
        ),
        "spark.driver.memory": conf.driver_memory,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # A commit takes 2.6 s with the default of 50 and 0.6 s with 1 on two cores.
        "spark.databricks.delta.snapshotPartitions": "1",
        # All jobs together have more than a thousand stages. A stage that is not in this cache is
        # compiled again in each batch, by Spark and then by Java.
        "spark.sql.codegen.cache.maxEntries": "3000",
        # Each table that a join broadcasts takes a page or more, by default 32 MB of a 2 GB heap,
        # and a batch joins dozens of small tables. With its header the page is 2 MB. A larger page
        # takes one more region of the heap, which wastes half of a heap of 4 or 8 GB.
        "spark.buffer.pageSize": f"{_PAGE_BYTES}b",
        # For cached frames on disk, Java's streams keep this number of 4 MB batches in memory in
        # each task. The default of 100 fills a heap of 1 GB.
        "spark.serializer.objectStreamReset": "10",
        "spark.sql.warehouse.dir": os.path.join(scratch, "quotaflow-spark-warehouse"),
        "spark.redaction.regex": _REDACTED,
        "spark.scheduler.mode": "FAIR",
        "spark.sql.streaming.stopTimeout": "30000",
    }
