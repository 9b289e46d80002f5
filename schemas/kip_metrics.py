"""Names of metrics in the five KIPs, drafts included, and what clients and brokers really send.

kip_metrics.csv has one line per name that is not sent as the KIP spells it. The names of KIP-714's
accepted tables are sent as they are: schemas/metrics.csv has them.
"""

import csv
from dataclasses import dataclass
from importlib import resources

from quotaflow.schemas.metrics import PREFIX

_VENDORS = ("librdkafka.", "io.", "com.")


@dataclass(frozen=True, slots=True)
class KipMetric:
    """One metric by the name that a KIP gives it.

    `listed` is where the KIP has it: in a table, in a table of the draft, or in a draft's text.
    `labels` are those of the KIP. `sent_as` has the names that clients push, and
    `bean:attribute` of a broker's JMX; empty: nobody sends it. `answers` has `table.column` where
    quotaflow has its values. `remark` says how these differ, or why nobody sends it.
    """

    kip: str
    listed: str
    name: str
    kind: str | None
    labels: tuple[str, ...]
    sent_as: tuple[str, ...]
    answers: tuple[str, ...]
    remark: str


def _metric(row: dict[str, str]) -> KipMetric:
    is_pushed = row["kip"] == "KIP-714" and not row["name"].startswith(_VENDORS)
    return KipMetric(
        kip=row["kip"],
        listed=row["listed"],
        name=PREFIX + row["name"] if is_pushed else row["name"],
        kind=row["kind"] or None,
        labels=tuple(row["labels"].split()),
        sent_as=tuple(each if is_bean(each) else PREFIX + each for each in row["sent_as"].split()),
        answers=tuple(row["answers"].split()),
        remark=row["remark"],
    )


def is_bean(name: str) -> bool:
    """Whether a name is of a broker's JMX, not of telemetry."""
    return ":" in name


def _metrics() -> tuple[KipMetric, ...]:
    text = (resources.files("quotaflow.schemas") / "kip_metrics.csv").read_text(encoding="utf-8")
    return tuple(map(_metric, csv.DictReader(text.splitlines())))


KIP_METRICS = _metrics()
"""Every name of the five KIPs that is not sent as the KIP spells it."""
