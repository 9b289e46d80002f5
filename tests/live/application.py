"""A Java application with metrics of its own, a part of it Kafka Streams (KIP-1076)."""

import subprocess
from pathlib import Path

from quotaflow.demo import java_classes
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.jvm import Jvm
from quotaflow.pipelines.spark.jars import jar_set, kafka_jars
from quotaflow.pipelines.spark.java import compiler

ID = "shop"
PRODUCER, CONSUMER = f"{ID}-producer", f"{ID}-consumer"
READS, WRITES = "orders", "shipped"
_SOURCE = Path(__file__).with_name("Application.java")
_TIMEOUT_S = 120


def work(cluster: LocalCluster) -> None:
    """Read a whole topic by Streams; then three pushes of a producer and a consumer beside it."""
    cluster.create_topics([WRITES], partitions=1)
    kafka = kafka_jars()
    jars = [*kafka, *jar_set("streams-jars", _SOURCE.parent)]
    classes = cluster.folder / "application"
    subprocess.run(
        [
            *(*compiler(), "-Xlint:all,-path", "-Werror"),
            *("-cp", ":".join(map(str, jars)), "-d", classes, _SOURCE),
        ],
        check=True,
    )
    jvm = Jvm([java_classes.compiled(kafka), *jars], classes, cluster.folder)
    login = str(cluster.properties_file("carol"))
    jvm.run("Application", login, ID, READS, WRITES, timeout_s=_TIMEOUT_S)
