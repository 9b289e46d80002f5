"""Errors of Spark, in a local JVM or over Spark Connect; and how a local JVM ended."""

import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from py4j.java_gateway import GatewayParameters

_ENDED_TIMEOUT_S = 30


def spark_errors() -> tuple[type[Exception], ...]:
    """Spark's own errors and, if py4j is installed, those of the bridge to a local JVM."""
    from pyspark.errors import PySparkException  # noqa: PLC0415  not a base dependency

    try:
        from py4j.protocol import Py4JError  # noqa: PLC0415  a client of Spark Connect has none
    except ModuleNotFoundError:
        return (PySparkException,)
    return (PySparkException, Py4JError)


def bridge_errors() -> tuple[type[Exception], ...]:
    """Spark's own errors, and what PySpark raises after the JVM of our session ended.

    () if no session was opened. A refused connection is an OSError, which other code raises too,
    and so is not among them.
    """
    return (*spark_errors(), EOFError) if "pyspark.errors" in sys.modules else ()


def jvm_ended() -> str | None:
    """A message that our session's JVM ended by itself, and what to do; None while it runs."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    gateway: Any = getattr(context, "_gateway", None)
    if not hasattr(gateway, "proc") or _listens(gateway.gateway_parameters):
        return None
    try:
        # It closes its connections before its process ends.
        code = gateway.proc.wait(_ENDED_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return None
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return (
        f"Spark's JVM ended by itself ({how}), most often for want of memory: raise "
        "spark.driver_memory, or lower ingest.max_offsets_per_trigger and "
        "results.max_bytes_per_trigger, then run it again; the tables are consistent"
    )


def _listens(at: "GatewayParameters") -> bool:
    try:
        with socket.create_connection((at.address, at.port), _ENDED_TIMEOUT_S):
            return True
    except OSError:
        return False
