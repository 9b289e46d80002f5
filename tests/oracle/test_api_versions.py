"""Versions of APIs that Kafka 4 removed, against the messages of Kafka's own jars."""

import json
import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

from quotaflow.pipelines.spark.jars import kafka_jars, spark_jars
from quotaflow.pipelines.warehouse import views

_COMMENT = re.compile(r"^\s*//.*$|\s//.*$", re.M)
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")
_OF_ZOOKEEPER = {"LEADER_AND_ISR", "STOP_REPLICA", "UPDATE_METADATA", "CONTROLLED_SHUTDOWN"}


def oldest_versions(jars: Iterable[Path]) -> dict[int, tuple[str, int]]:
    """By API key: name, and the oldest version that brokers or controllers of a release read."""
    (jar,) = (path for path in jars if path.name.startswith("kafka-clients-"))
    oldest = {}
    with zipfile.ZipFile(jar) as files:
        for name in files.namelist():
            if re.fullmatch(r"common/message/\w+Request\.json", name):
                message = json.loads(_COMMENT.sub("", files.read(name).decode()))
                first, _, last = message["validVersions"].partition("-")
                # No release had a version that is not stable: share groups began so (KIP-932).
                is_released = last or not message.get("latestVersionUnstable")
                if message.get("listeners") and first != "none" and is_released:
                    api = _WORD.sub("_", message["name"].removesuffix("Request")).upper()
                    oldest[message["apiKey"]] = api, int(first)
    return oldest


def test_the_removed_versions_are_those_of_kafka() -> None:
    ours = re.findall(r"\('(\w+)', (\d+)\)", views.load()["api_versions"].sql)
    kafka_3, kafka_4 = oldest_versions(spark_jars()), oldest_versions(kafka_jars())
    assert {kafka_3[key][0] for key in kafka_3.keys() - kafka_4.keys()} == _OF_ZOOKEEPER
    removed = [
        (api, str(oldest))
        for key, (api, oldest) in kafka_4.items()
        if key in kafka_3 and oldest > kafka_3[key][1]
    ]
    assert sorted(ours) == sorted(removed)
