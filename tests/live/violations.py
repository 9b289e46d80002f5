"""A warehouse whose tables ask for quotas of a real cluster, as if results had found violations."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.warehouse import Warehouse

from ..pipelines.conftest import violation
from ..pipelines.view_rows import fresh, setting
from ..pipelines.view_tables import make_tables

USAGE = 8_226_666.0
"""Bytes per second that each is said to have produced, 8.2 times what it may."""
QUOTA = 1_000_000
"""What it is held to then, by the stand-in for producer_ids_rate."""


def fill(conf: Conf, cluster_id: str, users: Sequence[str]) -> None:
    """Each of these users took producer ids 8.2 times as fast as it may, half an hour ago."""
    now = datetime.now(UTC)
    at = now - timedelta(minutes=30)
    of = {"cluster_id": cluster_id}
    used = of | {"event_time": at, "event_date": at.date(), "broker_id": 1, "client_id": "m"}
    used |= {"quota_type": "producer_byte_rate", "usage": USAGE}
    refused = setting("probe.producer_ids_rate", "refused: 42 Invalid configuration key", **of)
    rows = {
        "producer_id_rates": [violation(f"User:{user}", at, **of) for user in users],
        "quota_usage": [used | {"principal": f"User:{user}"} for user in users],
        "settings": [refused, setting("producer_ids.proxy", "producer_byte_rate", **of)],
        "pipeline_progress": [row | of for row in fresh(now)],
    }
    make_tables(Warehouse(conf.warehouse), rows)
