"""A warehouse whose tables propose quotas of a real cluster, as if results had measured usage."""

from collections.abc import Sequence
from datetime import timedelta

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ..delta_tables import recent_time
from ..rows import fresh, setting
from ..schemas.views.view_tables import make_tables_and_answers

USAGE = 800_000.0
"""Bytes per second that each user produced by these tables, without a quota."""
QUOTA = 1_000_000
"""What quota_advice proposes for each of them: a quarter more."""


def fill(conf: Conf, cluster_id: str, users: Sequence[str]) -> None:
    """Each of these users produced that half an hour ago, and conf allows quotas to be proposed.

    They did a week before, too: without a week of history no plan sets a quota.
    """
    # Tests of five minutes have the same rows, which are made once.
    now = recent_time()
    at = now - timedelta(minutes=30)
    on_cluster = {"cluster_id": cluster_id}
    used = on_cluster | {
        "event_time": at,
        "event_date": at.date(),
        "broker_id": 1,
        "client_id": "m",
    }
    used |= {"quota_type": "producer_byte_rate", "usage": USAGE, "throttled_requests": 0}
    rows = {
        "quota_usage": [
            used | {"principal": f"User:{user}", "event_time": time, "event_date": time.date()}
            for user in users
            for time in (at - timedelta(days=7), at)
        ],
        "settings": [setting("quotas.advised_users", "\n".join(users), **on_cluster)],
        "pipeline_progress": [row | on_cluster for row in fresh(now)],
    }
    make_tables_and_answers(Warehouse(conf.warehouse), rows)
