"""What the rules of `producer_id_rates` read of conf (KIP-936)."""

import pyarrow as pa

from quotaflow.pipelines.compute import texts
from quotaflow.pipelines.config import ProducerIdsSection
from quotaflow.pipelines.config.results import MAX_IDS_PER_S, MIN_IDS_PER_S
from quotaflow.pipelines.errors import ConfigError
from quotaflow.schemas.table import LONG, STRING
from quotaflow.udfs import producer_ids
from quotaflow.udfs.engine.rule import Walk

_MILLI = 1_000
_SCHEMA = pa.schema([pa.field("principal", STRING), pa.field("quota_milli", LONG)])


def quotas(conf: ProducerIdsSection) -> pa.Table:
    """The principals that have a quota of their own, in thousandths of an id per second.

    Raises ConfigError for a quota out of bounds.
    """
    rows = [
        {"principal": f"User:{user}", "quota_milli": _milli(user, quota)}
        for user, quota in conf.quotas.items()
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def default_quota(conf: ProducerIdsSection) -> int | None:
    """The quota of all other principals in the same unit; None: they are unlimited."""
    quota = conf.default_quota_per_s
    return None if quota is None else _milli("everybody else", quota)


def rate_period_s(conf: ProducerIdsSection) -> int:
    """The rate period in seconds: a rate is taken over it, and a full bucket has its tokens."""
    return conf.num_windows * conf.window_ms // 1_000


def memory_s(conf: ProducerIdsSection) -> int:
    """How far back, in seconds, it depends on ids whether one is new: one and a half windows."""
    return -(-3 * conf.window_ms // 2_000)


def flagged_sightings(conf: ProducerIdsSection) -> Walk:
    """Each request that shows an id, and whether the timed Bloom filter had not seen it."""
    return Walk(
        name="flagged_sightings",
        sql=texts.read("producer_id_sightings.sql"),
        schema=producer_ids.FLAGGED,
        function=producer_ids.flag_new_ids(
            conf.filter_items, conf.filter_false_positive_rate, conf.window_ms
        ),
    )


def _milli(user: str, quota_per_s: float) -> int:
    if not MIN_IDS_PER_S <= quota_per_s <= MAX_IDS_PER_S:
        raise ConfigError(
            f"the producer-id quota of {user} is {quota_per_s} per second, and must be between "
            f"{MIN_IDS_PER_S} and {MAX_IDS_PER_S}"
        )
    return round(quota_per_s * _MILLI)
