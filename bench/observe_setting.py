"""A broker whose request log can be changed while it runs, a broker for the topic, and rsyslog."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import observe_load
import yaml
from kafka import KafkaConsumer, TopicPartition

from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.credentials import write_private
from quotaflow.pipelines.spark.jars import kafka_jars

sys.path.insert(0, str(Path(__file__).parents[1] / ".ci" / "release"))
import receiver_jar

SETTINGS = ("off", "file", "file and rsyslog", "appender", "appender, PRODUCE 0.1")
PACKAGES = ("rsyslog", "rsyslog-kafka", "librdkafka1", "libestr0", "libfastjson4", "liblognorm5")
JVM = ("-XX:TieredStopAtLevel=4", "-Xmx512m")
"""As brokers run: the demo's stop at the first compiler."""
_LIBRARIES = "usr/lib/x86_64-linux-gnu"


@dataclass(slots=True)
class Observed:
    """The cluster under load, that of the topic, and the command of rsyslog if it can be had."""

    cluster: LocalCluster
    logs: LocalCluster
    folder: Path
    rsyslog: list[str] | None = None
    rsyslog_environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def broker_pid(self) -> int:
        """The observed broker."""
        return self.cluster.pids[1]

    def log_by(self, setting: str) -> None:
        """Change how the broker logs; log4j2 looks at its file every second."""
        if setting.startswith("appender"):
            layout = self._appender("0.1" if "0.1" in setting else "1")
        else:
            layout = _layout("log4j2.yaml")
        if setting == "off":
            layout["Configuration"]["Loggers"]["Logger"][0]["level"] = "INFO"
        layout["Configuration"]["monitorInterval"] = 1
        text = yaml.safe_dump(layout, sort_keys=False)
        (self.cluster.folder / "log4j2.yaml").write_text(text, encoding="utf-8")

    def written(self) -> tuple[int, int]:
        """Bytes of the log in files, and records in the topic."""
        parts = self.cluster.request_logs[1].parent.glob("requests*.jsonl")
        return sum(each.stat().st_size for each in parts), self._records()

    def check(self, setting: str, before: tuple[int, int]) -> None:
        """Raise RuntimeError where what was written is not what the setting writes."""
        grown = [b - a for a, b in zip(before, self.written(), strict=True)]
        has_file = setting.startswith("file")
        has_topic = setting.startswith("appender") or ("rsyslog" in setting and bool(self.rsyslog))
        if (grown[0] > 0, grown[1] > 0) != (has_file, has_topic):
            raise RuntimeError(f"{setting}: {grown[0]} bytes and {grown[1]} records were written")

    def _appender(self, share: str) -> Any:
        layout = _layout("log4j2-topic.yaml")
        properties = self._properties(share)
        layout["Configuration"]["Appenders"]["RequestLogTopic"][0]["config"] = str(properties)
        return layout

    def _properties(self, share: str) -> Path:
        login = self.logs.client_properties("shipper")
        settings = {
            "own.principal": "User:shipper",
            "sampling.PRODUCE": share,
            "bootstrap.servers": login.pop("bootstrap.servers"),
            **{f"producer.{key}": value for key, value in login.items()},
        }
        return write_private(self.folder / f"request-log-{share}.properties", settings)

    def _records(self) -> int:
        login = self.logs.librdkafka_properties("admin")
        consumer = KafkaConsumer(
            bootstrap_servers=self.logs.bootstrap_servers.split(","),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username=login["sasl.username"],
            sasl_plain_password=login["sasl.password"],
        )
        try:
            partitions = [TopicPartition(REQUEST_LOG_TOPIC, n) for n in range(3)]
            return sum(consumer.end_offsets(partitions).values())
        finally:
            consumer.close()


@contextmanager
def observed(folder: Path) -> Iterator[Observed]:
    """Two brokers in two clusters, and a topic for the load."""
    jar = receiver_jar.build(folder / "jar", kafka_jars())
    with (
        LocalCluster(folder / "observed", nodes=1, java_options=JVM, class_path=[jar]) as cluster,
        LocalCluster(folder / "logs", nodes=1) as logs,
    ):
        site = Observed(cluster, logs, folder)
        site.log_by("off")
        cluster.stop_broker(1)  # from here on log4j2 looks at its file
        cluster.start_broker(1)
        cluster.create_topics([observe_load.TOPIC], partitions=1)
        with_rsyslog(site)
        yield site


def with_rsyslog(site: Observed) -> None:
    """Unpack Debian's packages, if they can be had, and configure them by broker/rsyslog.conf."""
    packages = site.folder / "rsyslog"
    packages.mkdir()
    try:
        command = ["apt-get", "download", "-qq", *PACKAGES]
        subprocess.run(command, cwd=packages, check=True, timeout=120)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"without rsyslog: {error}", file=sys.stderr)
        return
    for package in packages.glob("*.deb"):
        subprocess.run(["/usr/bin/dpkg", "-x", package, packages], check=True)
    conf = site.folder / "rsyslog.conf"
    conf.write_text(rsyslog_conf(site), encoding="utf-8")
    site.rsyslog_environment["LD_LIBRARY_PATH"] = str(packages / _LIBRARIES)
    modules = ["-M", str(packages / _LIBRARIES / "rsyslog")]
    binary = str(packages / "usr/sbin/rsyslogd")
    site.rsyslog = [binary, "-n", "-f", str(conf), "-i", str(site.folder / "pid"), *modules]


def rsyslog_conf(site: Observed) -> str:
    """The file for operators with its EDIT lines edited: paths, brokers and login."""
    login = site.logs.librdkafka_properties("shipper")
    text = (files("quotaflow.broker") / "rsyslog.conf").read_text(encoding="utf-8")
    edits = {
        r"broker=\[.*?\]": f'broker=["{site.logs.bootstrap_servers}"]',
        # From the end: the lines of other settings are not its work.
        '"/var/log/kafka/requests.jsonl"': f'"{site.cluster.request_logs[1]}" freshStartTail="on"',
        "/var/lib/rsyslog": str(site.folder),
        r',\n *"ssl.ca.location=.*': "",
        **{f'"{key}=.*?"': f'"{key}={login[key]}"' for key in login if f'"{key}=' in text},
    }
    for pattern, new in edits.items():
        text = re.sub(pattern, lambda _, new=new: new, text)  # type: ignore[misc]
    return text


def _layout(name: str) -> Any:
    return yaml.safe_load((files("quotaflow.broker") / name).read_text(encoding="utf-8"))
