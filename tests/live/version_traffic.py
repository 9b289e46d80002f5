"""Traffic of a broker's own release, and the lines that it logs of it.

`python -m tests.live.version_traffic VERSION ...` writes them to tests/golden/versions/, for the
tests of the parser: one line of each API and version, as the broker wrote it.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from quotaflow.demo import traffic_configs
from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.spark.java import compiler
from quotaflow.schemas import events

from . import kafka_versions

TOPIC = "version-topic"
SUBSCRIPTION = "version-subscription"
USER = "alice"
_SOURCE = Path(__file__).with_name("VersionTraffic.java")
_GOLDEN = Path(__file__).parents[1] / "golden" / "versions"
_OTHERS = ("FETCH", "PRODUCE", "DESCRIBE_PRODUCERS")
_READ = frozenset({*events.BODY_APIS, *events.TELEMETRY_APIS, *_OTHERS})
_LONGEST = 6_000
_LAST_LINES_S = 1.0


def work(cluster: LocalCluster, classes: Path) -> None:
    """Let clients and an administrator of the cluster's own release do what logs have lines of."""
    cluster.create_topics([TOPIC], 1, 1)
    cluster.subscribe_telemetry(SUBSCRIPTION, interval_ms=1_000)
    jars = [str(jar) for jar in cluster.jars]
    command = [*compiler(), "-d", str(classes), "-cp", ":".join(jars), str(_SOURCE)]
    subprocess.run(command, check=True, timeout=120)
    _administrate(cluster)
    client = str(cluster.properties_file(USER))
    cluster.run_tool("VersionTraffic", client, TOPIC, timeout_s=120)
    time.sleep(_LAST_LINES_S)


def _administrate(cluster: LocalCluster) -> None:
    """Quotas, configs of each kind, producers: what an administrator changes and reads."""
    with cluster.admin() as admin:
        traffic_configs.set_quota("dave", "producer_byte_rate", 1e6)(admin)
        topic = ConfigResource(ConfigResourceType.TOPIC, TOPIC, {"retention.ms": "86400000"})
        admin.alter_configs([topic])
        admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, "1")])
        admin.describe_producers([TopicPartition(TOPIC, 0)])


def lines(cluster: LocalCluster) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each line of the request log as it was written, and its request."""
    for path in cluster.request_logs.values():
        for text in path.read_text(encoding="utf-8").splitlines():
            yield text, request_of(text)


def request_of(text: str) -> dict[str, Any]:
    """The request of a line in the envelope or in the stock layout."""
    stock = re.fullmatch(r"\[.*?\] \w+ Completed request:(.*) \(kafka\.request\.logger\)", text)
    whole: dict[str, Any] = json.loads(stock[1] if stock else text)
    return whole.get("r", whole)


def golden(version: str) -> list[str]:
    """The shortest line of each API and version that the parser reads."""
    chosen: dict[tuple[str, int], str] = {}
    with tempfile.TemporaryDirectory() as name:
        folder, classes = Path(name, "cluster"), Path(name, "classes")
        classes.mkdir()
        kafka = kafka_versions.jars_of(version)
        with LocalCluster(folder, 1, kafka=kafka, class_path=[classes]) as cluster:
            work(cluster, classes)
            for text, request in lines(cluster):
                header = request["requestHeader"]
                at = header["requestApiKeyName"], header["requestApiVersion"]
                is_shorter = at not in chosen or len(text) < len(chosen[at])
                if at[0] in _READ and is_shorter and not request["isForwarded"]:
                    chosen[at] = text
    return [chosen[at] for at in sorted(chosen) if len(chosen[at]) < _LONGEST]


if __name__ == "__main__":
    _GOLDEN.mkdir(exist_ok=True)
    for each in sys.argv[1:]:
        path = _GOLDEN / f"{each}.jsonl"
        path.write_text("".join(f"{line}\n" for line in golden(each)), encoding="utf-8")
