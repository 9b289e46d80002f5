"""Names of error codes, against those of Kafka."""

import os
import re
import subprocess
from pathlib import Path

from quotaflow.pipelines.spark.jars import kafka_jars
from quotaflow.pipelines.spark.java import SHORT_RUN, java
from quotaflow.pipelines.warehouse import views

SOURCE = Path(__file__).with_name("ErrorNames.java")


def test_every_error_has_the_name_that_kafka_gives_it() -> None:
    class_path = os.pathsep.join(map(str, kafka_jars()))
    command = [java(), "-Xmx128m", *SHORT_RUN, "-cp", class_path, str(SOURCE)]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    ours = re.findall(r"\((-?\d+), '(\w+)'\)", views.load()["error_names"].sql)
    assert sorted(" ".join(pair) for pair in ours) == sorted(printed.splitlines())
