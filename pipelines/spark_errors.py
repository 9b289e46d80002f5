"""What Spark raises, whether it runs in a JVM of ours or behind Spark Connect."""

_MOST_CHARS = 500


def spark_errors() -> tuple[type[Exception], ...]:
    """Spark's own errors, and, where py4j is there, those of the bridge to a local JVM."""
    from pyspark.errors import PySparkException  # noqa: PLC0415  not a base dependency

    try:
        from py4j.protocol import Py4JError  # noqa: PLC0415  a client of Spark Connect has none
    except ModuleNotFoundError:
        return (PySparkException,)
    return (PySparkException, Py4JError)


def first_line(message: str) -> str:
    """What went wrong, without the stacks that follow."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[0][:_MOST_CHARS] if lines else "no message"
