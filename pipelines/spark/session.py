"""The only place that builds a SparkSession: Databricks' own, Spark Connect's, or one of ours."""

import logging
import os
import pwd
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib import resources
from typing import TYPE_CHECKING

from quotaflow.pipelines.config import SparkSection
from quotaflow.pipelines.errors import MissingToolError
from quotaflow.pipelines.spark import jars, worker_archive
from quotaflow.pipelines.spark.spark_errors import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STDOUT, _STDERR = 1, 2
_REDACTED = "(?i)secret|password|token|access[.]?key|jaas|user[.]info|credential"

# VACUUM lists files in so many tasks, by default 10000: a minute for one small table.
_LISTS_IN = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_PAGE_BYTES = 2 * 1024 * 1024 - 16
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
ONE_COMPILER = {_JAVA_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"}
"""For `spark.conf`: a JVM that settles sooner, and is slower once warm."""
SHORT_LIVED = ONE_COMPILER | {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For `spark.conf` of runs of a minute or two, in which compiling costs more than it saves: half
the time, and slower once warm."""

_FORGETFUL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Spark keeps for its UI, off or not, a thousand executions with the text of each plan: that
    # was most of what grew from one micro-batch to the next.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.ui.dagGraph.retainedRootRDDs": "20",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.sql.ui.explainMode": "simple",
}
"""Settings of our own session: its UI is off, and so it need not remember what that would show."""

_TIME_ZONE = "spark.sql.session.timeZone"
_ROWS_AT_ONCE = "spark.sql.execution.arrow.maxRecordsPerBatch"
_EVERYWHERE = {_TIME_ZONE: "UTC", _ROWS_AT_ONCE: "1000"}
_ON_THIS_MACHINE = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
_PYTHON, _PY_FILES = "spark.pyspark.python", "spark.submit.pyFiles"


def get(conf: SparkSection, progress: Callable[[str], None] = lambda _: None) -> "SparkSession":
    """The session every job uses: the running one on Databricks or Connect, else one of ours.

    Raises MissingToolError when no JDK 17+, no pyspark or no jars can be had, or when the user has
    no name.
    """
    return _own(conf, progress) if owner() is None else _running()


def owner() -> str | None:
    """Whose session jobs take, in words; None where one of our own is started, which needs Java."""
    if "DATABRICKS_RUNTIME_VERSION" in os.environ:
        return "Databricks' own"
    if "SPARK_REMOTE" in os.environ:
        # Parameters of the address may be a token.
        address = os.environ["SPARK_REMOTE"].removeprefix("sc://").partition("/")[0]
        return f"Spark Connect at {address}"
    return None


def short_lived(conf: SparkSection) -> SparkSection:
    """Conf for a run of a minute or two; what conf itself says of Spark wins."""
    return conf.model_copy(update={"conf": SHORT_LIVED | conf.conf})


def _running() -> "SparkSession":
    from pyspark.sql import SparkSession  # noqa: PLC0415  pyspark is not a base dependency

    spark = SparkSession.builder.getOrCreate()
    spark.conf.set(_TIME_ZONE, "UTC")
    # Serverless compute takes few settings; the sizes of its batches are its own then.
    with suppress(*spark_errors()):
        spark.conf.set(_ROWS_AT_ONCE, _EVERYWHERE[_ROWS_AT_ONCE])
    return spark


def _own(conf: SparkSection, progress: Callable[[str], None]) -> "SparkSession":
    _check_user()
    given = settings(conf, progress)
    from pyspark.sql import SparkSession  # noqa: PLC0415  after the check that names the extra

    # Workers on this machine must be this interpreter, with quotaflow in it, whatever python3 is
    # on PATH; where it is on other machines only conf knows.
    os.environ["PYSPARK_PYTHON"] = given.get(_PYTHON, sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # It logs whole stacks of what we tell in one line, and of each Ctrl-C, some on the root logger.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)
    progress("starting Spark")
    builder = SparkSession.builder.master(conf.master).appName("quotaflow")
    for key, value in given.items():
        builder = builder.config(key, value)
    with _output_to_stderr(), ThreadPoolExecutor(1, "spark-start") as other:
        # pyspark, interrupted while its JVM starts, takes away the file the JVM is about to write;
        # the JVM fails at that and lives on alone. Started by another thread it is not interrupted
        # (leaving this block waits for it), nor does pyspark take SIGINT for itself.
        return other.submit(builder.getOrCreate).result()


def _check_user() -> None:
    """Raise MissingToolError where the user has no name: Hadoop ends the JVM with a stack trace."""
    uid = os.getuid()
    try:
        pwd.getpwuid(uid)
    except KeyError:
        raise MissingToolError(
            f"Spark needs a user with a name, and uid {uid} has none: give it a line in /etc/passwd"
        ) from None


@contextmanager
def _output_to_stderr() -> Iterator[None]:
    """What a process that is started meanwhile prints is no answer of ours: Delta's VACUUM does."""
    sys.stdout.flush()
    ours = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)
    try:
        yield
    finally:
        os.dup2(ours, _STDOUT)
        os.close(ours)


def settings(
    conf: SparkSection, progress: Callable[[str], None] = lambda _: None
) -> dict[str, str]:
    """What a session of our own starts with; what `spark.conf` itself says wins. Raises as `get`.

    On another master than local[...] the workers are sent what they run of quotaflow.
    """
    paths = jars.spark_jars(progress)
    ours = _EVERYWHERE | _basics(conf) | _FORGETFUL
    if conf.master.startswith("local"):
        cores = str(os.cpu_count() or 2)
        ours |= _ON_THIS_MACHINE | {"spark.sql.shuffle.partitions": cores, _LISTS_IN: cores}
    java_options = [ours[_JAVA_OPTIONS], conf.conf.get(_JAVA_OPTIONS, "")]
    given = ours | conf.conf | {_JAVA_OPTIONS: " ".join(java_options).strip()}
    given["spark.jars"] = ",".join(str(path) for path in paths)
    if not conf.master.startswith("local"):
        given[_PY_FILES] = ",".join(
            filter(None, [conf.conf.get(_PY_FILES), str(worker_archive.package())])
        )
    return given


def _basics(conf: SparkSection) -> dict[str, str]:
    scratch = tempfile.gettempdir()
    logging_conf = resources.files("quotaflow.conf") / "log4j2-spark.properties"
    return {
        # A query stopped within a batch looks for the interrupt in the batch's whole error, by an
        # expression that takes a frame for each character: 4 MB were too few for a short one.
        _JAVA_OPTIONS: f'"-Dlog4j2.configurationFile=file:{logging_conf}" -Xss32m',
        "spark.driver.memory": conf.driver_memory,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # A commit takes 2.6 s with the default of 50 and 0.6 s with 1 on two cores.
        "spark.databricks.delta.snapshotPartitions": "1",
        # All jobs together come by a thousand stages and some more from batch to batch: what is
        # not kept is compiled anew, by Spark and then by Java.
        "spark.sql.codegen.cache.maxEntries": "3000",
        # Each table that a join broadcasts takes a page at least, by default 32 MB of a 2 GB heap:
        # a batch joins dozens, of a few rows each. With its header it is 2 MB: past that a page
        # would take one more of the heap's regions, and half of a heap of 4 or 8 GB be lost.
        "spark.buffer.pageSize": f"{_PAGE_BYTES}b",
        # Of frames that are held and go by disk Java's streams keep so many batches of 4 MB in
        # memory, in each task: the default of 100 is all of a 1 GB heap.
        "spark.serializer.objectStreamReset": "10",
        "spark.sql.warehouse.dir": os.path.join(scratch, "quotaflow-spark-warehouse"),
        "spark.redaction.regex": _REDACTED,
        "spark.scheduler.mode": "FAIR",
        "spark.sql.streaming.stopTimeout": "30000",
    }
