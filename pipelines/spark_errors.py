"""What Spark raises, whether it runs in a JVM of ours or behind Spark Connect."""


def spark_errors() -> tuple[type[Exception], ...]:
    """Spark's own errors, and, where py4j is there, those of the bridge to a local JVM."""
    from pyspark.errors import PySparkException  # noqa: PLC0415  not a base dependency

    try:
        from py4j.protocol import Py4JError  # noqa: PLC0415  a client of Spark Connect has none
    except ModuleNotFoundError:
        return (PySparkException,)
    return (PySparkException, Py4JError)
