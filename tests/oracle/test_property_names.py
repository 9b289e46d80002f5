"""Names of client properties, against those of Kafka."""

import os
import subprocess
from pathlib import Path

from quotaflow.pipelines.config.kafka_names import KAFKA_PROPERTIES
from quotaflow.pipelines.spark.jars import kafka_jars
from quotaflow.pipelines.spark.java import java

SOURCE = Path(__file__).with_name("PropertyNames.java")


def test_every_property_of_kafkas_clients_is_there() -> None:
    class_path = os.pathsep.join(map(str, kafka_jars()))
    command = [java(), "-Xmx128m", "-XX:+UseSerialGC", "-cp", class_path, str(SOURCE)]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    assert sorted(KAFKA_PROPERTIES) == printed.splitlines()
