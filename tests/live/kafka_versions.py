"""Brokers of each Kafka release that quotaflow is for: their jars, from one function."""

from collections.abc import Callable, Sequence
from pathlib import Path

from quotaflow.pipelines.spark import jars
from quotaflow.pipelines.spark.jars import Progress

_SETS = Path(__file__).parent / "kafka_sets"
OF_DEMO = "4.3.1"
VERSIONS = ("3.9.2", "4.0.2", "4.1.2", "4.2.2", OF_DEMO, "4.4.0")


def jars_of(version: str) -> Callable[[Progress], Sequence[Path]]:
    """What gives the class path of a broker of this release; it is fetched once."""
    if version == OF_DEMO:
        return jars.kafka_jars
    return lambda progress: jars.jar_set(f"kafka-{version}", _SETS, progress)
