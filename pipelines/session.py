"""The only place that builds a SparkSession: Databricks' own, Spark Connect's, or a local one."""

import logging
import os
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from typing import TYPE_CHECKING

from quotaflow.pipelines import jars
from quotaflow.pipelines.config import Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REDACTED = "(?i)secret|password|token|access[.]?key|jaas|user[.]info|credential"

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
"""Settings of a local session: its UI is off, and so it need not remember what that would show."""

_EVERYWHERE = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
}


def get(conf: Spark, progress: Callable[[str], None] = lambda _: None) -> "SparkSession":
    """The session every job uses: the running one on Databricks or Connect, else a local one.

    Raises MissingToolError when no JDK 17+, no pyspark or no jars can be had.
    """
    if "DATABRICKS_RUNTIME_VERSION" in os.environ or "SPARK_REMOTE" in os.environ:
        return _running()
    return _local(conf, progress)


def short_lived(conf: Spark) -> Spark:
    """Conf for a run of a minute or two; what conf itself says of Spark wins."""
    return conf.model_copy(update={"conf": SHORT_LIVED | conf.conf})


def _running() -> "SparkSession":
    from pyspark.sql import SparkSession  # noqa: PLC0415  pyspark is not a base dependency

    spark = SparkSession.builder.getOrCreate()
    for key, value in _EVERYWHERE.items():
        spark.conf.set(key, value)
    return spark


def _local(conf: Spark, progress: Callable[[str], None]) -> "SparkSession":
    paths = jars.spark_jars(progress)
    from pyspark.sql import SparkSession  # noqa: PLC0415  after the check that names the extra

    # Workers must be this interpreter, with quotaflow in it, whatever python3 is on PATH.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # It logs whole stacks of what we tell in one line, and of each Ctrl-C, some on the root logger.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)
    progress("starting Spark")
    builder = SparkSession.builder.master(conf.master).appName("quotaflow")
    ours = _EVERYWHERE | _local_settings(conf)
    java_options = [ours[_JAVA_OPTIONS], conf.conf.get(_JAVA_OPTIONS, "")]
    settings = ours | conf.conf | {_JAVA_OPTIONS: " ".join(java_options).strip()}
    settings["spark.jars"] = ",".join(str(path) for path in paths)
    for key, value in settings.items():
        builder = builder.config(key, value)
    with ThreadPoolExecutor(1, "spark-start") as other:
        # pyspark, interrupted while its JVM starts, takes away the file the JVM is about to write;
        # the JVM fails at that and lives on alone. Started by another thread it is not interrupted
        # (leaving this block waits for it), nor does pyspark take SIGINT for itself.
        return other.submit(builder.getOrCreate).result()


def _local_settings(conf: Spark) -> dict[str, str]:
    cores = str(os.cpu_count() or 2)
    scratch = tempfile.gettempdir()
    logging_conf = resources.files("quotaflow.conf") / "log4j2-spark.properties"
    return {
        _JAVA_OPTIONS: f'"-Dlog4j2.configurationFile=file:{logging_conf}"',
        "spark.driver.memory": conf.driver_memory,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # A commit takes 2.6 s with the default of 50 and 0.6 s with 1 on two cores.
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": cores,
        # More stages than the default of 100 come by in one batch: all would be compiled anew.
        "spark.sql.codegen.cache.maxEntries": "500",
        # Each table that a join broadcasts takes a page at least, by default 32 MB of a 2 GB heap:
        # a batch joins dozens, of a few rows each.
        "spark.buffer.pageSize": "2m",
        "spark.sql.warehouse.dir": os.path.join(scratch, "quotaflow-spark-warehouse"),
        "spark.redaction.regex": _REDACTED,
        "spark.scheduler.mode": "FAIR",
        "spark.sql.streaming.stopTimeout": "30000",
    } | _FORGETFUL
