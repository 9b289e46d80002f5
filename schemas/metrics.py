"""The KIP-714 catalogue: what clients push, in which unit, and which client pushes it.

Neither the Java client nor librdkafka sends units, so they come from here. metrics.csv has one line
per family: groups and quantities, and the statistics of each (`rate`, `total`, `avg`, `max`, `min`;
`-` represents the bare quantity, `sum` for one that Kafka sends as a sum). The list is open:
applications (KIP-1076) push names of their own through the same channel, and Java puts
org.apache.kafka before them too. Units are UCUM, as OTLP asks for: By, ms, ns, s, 1 for counts and
ratios.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

PREFIX = "org.apache.kafka."

JAVA, LIBRDKAFKA = "apache-kafka-java", "librdkafka"
"""The libraries; what wraps librdkafka often gives a client_software_name of its own."""

_PER_STAT = {"rate": "/s", "rate.per.hour": "/h"}
_SUMS = {"total", "sum"}
_BARE = {"-", "sum"}
_STAT_MEANINGS = {
    "rate": ": per second",
    "rate.per.hour": ": per hour",
    "total": ": sum",
    "avg": ": average",
    "max": ": greatest",
    "min": ": least",
}


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name as sent, unit, kind, the client libraries that send it, its meaning.

    `kip` is the KIP whose list of telemetry names has it: those of KIP-714 are the standard ones,
    which every client library should send. Other KIPs name metrics as JMX shows them.
    """

    name: str
    unit: str
    kind: str
    clients: tuple[str, ...]
    kip: str | None
    meaning: str

    @property
    def kip_name(self) -> str | None:
        """The name in the KIP's list; None where none lists it.

        KIP-714's tables leave out the prefix for brevity; here it is whole, and as sent.
        """
        return self.name if self.kip else None

    @property
    def is_standard(self) -> bool:
        """It is one of KIP-714's standard producer and consumer metrics."""
        return self.kip == "KIP-714"


def _family(row: dict[str, str]) -> Iterator[Metric]:
    by_client = {JAVA: row["java"].split(), LIBRDKAFKA: row["librdkafka"].split()}
    stats = dict.fromkeys(stat for names in by_client.values() for stat in names)
    for group in row["groups"].split():
        for quantity in row["quantities"].split():
            for stat in stats:
                yield Metric(
                    name=PREFIX + f"{group}.{quantity}" + ("" if stat in _BARE else f".{stat}"),
                    unit=row["unit"] + _PER_STAT.get(stat, ""),
                    kind="sum" if stat in _SUMS else "gauge",
                    clients=tuple(client for client, names in by_client.items() if stat in names),
                    kip=row["kip"] or None,
                    meaning=row["meaning"] + _STAT_MEANINGS.get(stat, ""),
                )


def _metrics() -> dict[str, Metric]:
    text = (resources.files("quotaflow.schemas") / "metrics.csv").read_text(encoding="utf-8")
    families = csv.DictReader(text.splitlines())
    return {metric.name: metric for row in families for metric in _family(row)}


METRICS = _metrics()
"""Every metric known, by its full name."""


def unit_of(name: str) -> str | None:
    """The UCUM unit of a metric by its full name; None where the catalogue does not know it."""
    metric = METRICS.get(name)
    return metric.unit if metric else None
