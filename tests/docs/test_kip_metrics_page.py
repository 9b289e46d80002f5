"""docs/kip_metrics.md has what schemas/kip_metrics.csv has, and labels that have their columns."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from quotaflow.schemas.kip_metrics import KIP_METRICS, KipMetric
from quotaflow.schemas.metrics import METRICS, PREFIX
from quotaflow.schemas.tables.telemetry import CLIENT_METRICS

PAGE = (Path(__file__).parents[2] / "docs" / "kip_metrics.md").read_text(encoding="utf-8")


def row_of(metric: KipMetric) -> str:
    def quoted(names: tuple[str, ...]) -> str:
        return ", ".join(f"`{name.removeprefix(PREFIX)}`" for name in names)

    sent, answers = quoted(metric.sent_as) or "nobody sends it", quoted(metric.answers)
    return f"| `{metric.name.removeprefix(PREFIX)}` | {sent} | {answers} | {metric.remark} |"


def rows_of(kip: str) -> Iterator[str]:
    """The rows of one KIP, those of its tables first."""
    metrics = [metric for metric in KIP_METRICS if metric.kip == kip]
    for metric in sorted(metrics, key=lambda metric: metric.listed == "draft text"):
        yield row_of(metric)


@pytest.mark.parametrize("kip", sorted({metric.kip for metric in KIP_METRICS}))
def test_the_page_has_the_rows_of_the_list(kip: str) -> None:
    section = re.split(rf"^## {kip}\b", PAGE, flags=re.M)[1].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.count("|") == 5][2:]
    assert rows == list(rows_of(kip))


def test_the_standard_metrics_are_those_that_are_sent_as_they_are() -> None:
    text = " ".join(re.findall(r"^`(?:producer|consumer)\..*", PAGE, re.M)).replace("`", " ")
    standard = {metric.name for metric in METRICS.values() if metric.is_standard}
    assert {PREFIX + name for name in text.split()} == standard


def test_labels_have_their_columns() -> None:
    labels = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", PAGE, re.M)
    assert len(labels) == 17
    assert {column for _, column in labels} <= {column.name for column in CLIENT_METRICS.columns}
