"""docs/kip_metrics.md: labels of KIP-714 have their columns."""

import re

from quotaflow.schemas.tables.declared import CLIENT_METRICS

from .pages import text_of

PAGE = text_of("docs/kip_metrics.md")


def test_labels_have_their_columns() -> None:
    labels = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", PAGE, re.M)
    assert len(labels) == 17
    assert {column for _, column in labels} <= {column.name for column in CLIENT_METRICS.columns}
