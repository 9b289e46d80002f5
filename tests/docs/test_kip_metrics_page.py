"""docs/kip_metrics.md: labels of KIP-714 have their columns."""

import re
from pathlib import Path

from quotaflow.schemas.tables.telemetry import CLIENT_METRICS

PAGE = (Path(__file__).parents[2] / "docs" / "kip_metrics.md").read_text(encoding="utf-8")


def test_labels_have_their_columns() -> None:
    labels = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", PAGE, re.M)
    assert len(labels) == 17
    assert {column for _, column in labels} <= {column.name for column in CLIENT_METRICS.columns}
