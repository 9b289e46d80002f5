"""Values of conf that views compute with, as rows of `settings`: SQL cannot read a conf file."""

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from quotaflow.pipelines.config import Conf

KEYS = (
    "prices.currency",
    "prices.produced_per_gib",
    "prices.consumed_per_gib",
    "prices.cross_rack_per_gib",
    "quotas.percentile",
    "quotas.headroom",
    "quotas.advice_days",
    "quotas.advised_users",
    "producer_ids.proxy",
)


def of_conf(conf: Conf) -> Iterator[dict[str, Any]]:
    """Each of KEYS with its value as text; none of them may be a secret."""
    for key in KEYS:
        value = attrgetter(key)(conf)
        text = ",".join(value) if isinstance(value, list) else str(value)
        yield {"setting": key, "setting_value": text}
