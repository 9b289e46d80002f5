"""What rules read beside tables: parameters, relations and walks, by the names in their texts.

A text takes those that it names. Some are constants of Kafka that Python has anyway, and the others
come from conf.
"""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from quotaflow.pipelines.compute import texts
from quotaflow.pipelines.config import Conf, ProducerIdsSection
from quotaflow.pipelines.config.results import MAX_IDS_PER_S, MIN_IDS_PER_S
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.results import alert_inputs
from quotaflow.schemas.configs import HARMLESS
from quotaflow.schemas.events import NO_TOPIC_ID
from quotaflow.schemas.table import INT, LONG, STRING
from quotaflow.udfs import consumer_protocols, producer_ids
from quotaflow.udfs.engine.rule import Walk
from quotaflow.udfs.rules import quota
from quotaflow.udfs.rules.client_rack import ranges
from quotaflow.udfs.rules.fetch_fault import ERRORS, LOOP_REDIRECTS, SPIN_ANSWERS

_FETCH_ERRORS = pa.table(
    {"code": list(ERRORS), "name": list(ERRORS.values())},
    schema=pa.schema([pa.field("code", INT), pa.field("name", STRING)]),
)
_CONSUMER_PROTOCOLS = Walk(
    "consumer_protocols",
    consumer_protocols.SQL,
    consumer_protocols.PROTOCOLS,
    consumer_protocols.read,
)

PARAMETERS: Mapping[str, Callable[[Conf], object]] = {
    "no_topic_id": lambda _: NO_TOPIC_ID,
    "harmless": lambda _: sorted(HARMLESS),
    "exempt_apis": lambda _: list(quota.EXEMPT_APIS),
    "refused": lambda _: quota.CLUSTER_AUTHORIZATION_FAILED,
    "loop_redirects": lambda _: LOOP_REDIRECTS,
    "spin_answers": lambda _: SPIN_ANSWERS,
    "quota_refill_s": lambda conf: conf.quotas.refill_s,
    "quota_rate_period_s": lambda conf: conf.quotas.rate_period_s,
    "quota_window_ms": lambda conf: conf.quotas.window_ms,
    "id_window_ms": lambda conf: conf.producer_ids.window_ms,
    "id_window_s": lambda conf: conf.producer_ids.window_ms // 1_000,
    "id_rate_period_s": lambda conf: rate_period_s(conf.producer_ids),
    "id_memory_s": lambda conf: memory_s(conf.producer_ids),
    "default_quota_milli": lambda conf: default_quota(conf.producer_ids),
    "alert_memory_s": lambda conf: alert_inputs.memory_s(conf.alerts),
    "alert_readings": lambda conf: alert_inputs.readings(conf.alerts),
}
"""Values of `$name` in texts, and in the heads of results."""

RELATIONS: Mapping[str, Callable[[Conf], pa.Table]] = {
    "quota_levels": lambda _: _quota_levels(),
    "fetch_errors": lambda _: _FETCH_ERRORS,
    "racks": lambda conf: networks(conf.racks),
    "rack_patterns": lambda conf: patterns(conf.rack_patterns),
    "producer_id_quotas": lambda conf: quotas(conf.producer_ids),
    "alert_rules": lambda conf: alert_inputs.rules(conf.alerts),
}
"""Relations of a few rows that are no table."""

WALKS: Mapping[str, Callable[[Conf], Walk]] = {
    # `group_requests` has no word of this name: it would be computed again for each result.
    "consumer_protocols": lambda _: _CONSUMER_PROTOCOLS,
    "flagged_sightings": lambda conf: flagged_sightings(conf.producer_ids),
    "alert_events": lambda conf: alert_inputs.events(conf.alerts),
}
"""Relations that Python makes of sorted rows."""


def _quota_levels() -> pa.Table:
    """How an entity of each level selects users and client ids."""
    rows = [
        {"level": level, "of_user": of_user, "of_client_id": of_client_id}
        for level, (of_user, of_client_id) in enumerate(quota.LEVELS, 1)
    ]
    return pa.Table.from_pylist(rows)


_NETWORKS = pa.schema(
    [
        pa.field("first", STRING),
        pa.field("last", STRING),
        pa.field("length", INT),
        pa.field("rack", STRING),
        pa.field("place", INT),
    ]
)
_PATTERNS = pa.schema([pa.field("pattern", STRING), pa.field("place", INT)])


def networks(racks: Mapping[str, str]) -> pa.Table:
    """A row per network: its first and last address as hex digits, how many, and its rack.

    Of those that contain an address, the one with the least `place` counts: the narrowest one.
    """
    rows = [
        {
            "first": network.first,
            "last": network.last,
            "length": len(network.first),
            "rack": network.rack,
            "place": place,
        }
        for place, network in enumerate(ranges(racks))
    ]
    return pa.Table.from_pylist(rows, schema=_NETWORKS)


def patterns(rack_patterns: Sequence[str]) -> pa.Table:
    """A row per pattern of client ids; of those that match, the one with the least `place` counts.

    That is the first one.
    """
    rows = [{"pattern": each, "place": place} for place, each in enumerate(rack_patterns)]
    return pa.Table.from_pylist(rows, schema=_PATTERNS)


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
