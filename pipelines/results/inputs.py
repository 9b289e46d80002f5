"""What rules read beside tables: parameters, relations and walks, by the names in their texts.

A text takes those that it names. Some are constants of Kafka that Python has anyway, and the others
come from conf.
"""

from collections.abc import Callable, Mapping

import pyarrow as pa

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.results import alert_inputs, producer_id_inputs
from quotaflow.pipelines.results.rack_inputs import networks, patterns
from quotaflow.schemas.configs import HARMLESS
from quotaflow.schemas.events import NO_TOPIC_ID
from quotaflow.schemas.table import INT, STRING
from quotaflow.udfs import consumer_protocols
from quotaflow.udfs.engine.rule import Walk
from quotaflow.udfs.rules import quota
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
    "id_rate_period_s": lambda conf: producer_id_inputs.rate_period_s(conf.producer_ids),
    "id_memory_s": lambda conf: producer_id_inputs.memory_s(conf.producer_ids),
    "default_quota_milli": lambda conf: producer_id_inputs.default_quota(conf.producer_ids),
    "alert_memory_s": lambda conf: alert_inputs.memory_s(conf.alerts),
    "alert_readings": lambda conf: alert_inputs.readings(conf.alerts),
}
"""Values of `$name` in texts, and in the heads of results."""

RELATIONS: Mapping[str, Callable[[Conf], pa.Table]] = {
    "quota_levels": lambda _: _quota_levels(),
    "fetch_errors": lambda _: _FETCH_ERRORS,
    "racks": lambda conf: networks(conf.racks),
    "rack_patterns": lambda conf: patterns(conf.rack_patterns),
    "producer_id_quotas": lambda conf: producer_id_inputs.quotas(conf.producer_ids),
    "alert_rules": lambda conf: alert_inputs.rules(conf.alerts),
}
"""Relations of a few rows that are no table."""

WALKS: Mapping[str, Callable[[Conf], Walk]] = {
    # `group_requests` has no word of this name: it would be computed again for each result.
    "consumer_protocols": lambda _: _CONSUMER_PROTOCOLS,
    "flagged_sightings": lambda conf: producer_id_inputs.flagged_sightings(conf.producer_ids),
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
