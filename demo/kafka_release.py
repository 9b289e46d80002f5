"""What the jars of a Kafka release decide: how brokers log, and what lets clients push."""

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_EXPORTER = "org/apache/kafka/server/telemetry/ClientTelemetryExporterProvider.class"
_REPORTER = "metric.reporters"
_WITH_JMX = "org.apache.kafka.common.metrics.JmxReporter,quotaflow.{}"


@dataclass(frozen=True, slots=True)
class KafkaRelease:
    """The class path of a broker."""

    jars: Sequence[Path]

    @property
    def logs_by_reload4j(self) -> bool:
        """Whether brokers log by log4j 1 and not by log4j2: those before Kafka 4.0 (KIP-653)."""
        return any(jar.name.startswith("reload4j-") for jar in self.jars)

    @property
    def loads_receiver(self) -> bool:
        """Whether it has the interfaces of TelemetryReceiver.java, from 4.2 on (KIP-1217)."""
        clients = next(jar for jar in self.jars if jar.name.startswith("kafka-clients-"))
        with zipfile.ZipFile(clients) as archive:
            return _EXPORTER in archive.namelist()

    @property
    def layout(self) -> str:
        """The file of `broker/` that makes these brokers write their request log."""
        return "log4j.properties" if self.logs_by_reload4j else "log4j2.yaml"

    def logging_flag(self, file: Path) -> str:
        """The flag of a JVM that logs by this file."""
        key = "log4j.configuration" if self.logs_by_reload4j else "log4j2.configurationFile"
        return f"-D{key}=file:{file}"

    @property
    def settings(self) -> Mapping[str, str]:
        """Broker settings that differ from those of `broker_config`."""
        return {} if self.loads_receiver else {_REPORTER: _WITH_JMX.format("TelemetryGate")}
