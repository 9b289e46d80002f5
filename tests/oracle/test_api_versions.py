"""Versions of APIs that Kafka 4 removed, against the messages of Kafka's own jars."""

import json
import re
import zipfile
from pathlib import Path

from quotaflow.pipelines.spark.jars import kafka_jars
from quotaflow.pipelines.warehouse import views

_COMMENT = re.compile(r"^\s*//.*$|\s//.*$", re.M)
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def oldest_versions() -> dict[str, int]:
    """The oldest version of each API that brokers of the newest Kafka read, where it is not 0."""
    (jar,) = (path for path in map(Path, kafka_jars()) if path.name.startswith("kafka-clients-"))
    oldest = {}
    with zipfile.ZipFile(jar) as files:
        for name in files.namelist():
            if re.fullmatch(r"common/message/\w+Request\.json", name):
                message = json.loads(_COMMENT.sub("", files.read(name).decode()))
                version = message["validVersions"].partition("-")[0]
                if "broker" in (message.get("listeners") or ()) and version not in {"none", "0"}:
                    api = _WORD.sub("_", message["name"].removesuffix("Request")).upper()
                    oldest[api] = int(version)
    return oldest


def test_the_removed_versions_are_those_of_kafka() -> None:
    ours = re.findall(r"\('(\w+)', (\d+)\)", views.load()["api_versions"].sql)
    kafka = oldest_versions()
    assert {api: int(version) for api, version in ours}.items() <= kafka.items()
    # No release had the first versions of share groups (KIP-932). WRITE_TXN_MARKERS is of brokers.
    others = kafka.keys() - {api for api, _ in ours}
    assert {api for api in others if not api.startswith("SHARE_")} == {"WRITE_TXN_MARKERS"}
