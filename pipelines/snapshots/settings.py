"""`settings`: values of conf and answers to probes, for views to read."""

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.kafka.cluster_state import ClusterState, UnansweredError
from quotaflow.pipelines.snapshots.observations import Row, UnansweredPart
from quotaflow.schemas.configs import PROBE, PRODUCER_IDS_RATE, REFUSED
from quotaflow.udfs.rules.address import bounds
from quotaflow.udfs.rules.pseudonym import COLUMNS

KEYS = (
    "prices.currency",
    "prices.produced_per_gib",
    "prices.consumed_per_gib",
    "prices.cross_rack_per_gib",
    "prices.remote_read_per_gib",
    "prices.stored_per_gib_month",
    "quotas.percentile",
    "quotas.headroom",
    "quotas.advice_days",
    "quotas.advised_users",
    "quotas.raise_budget_share",
    "replication.network_bytes_per_s",
    "replication.stale_throttle_s",
    "replication.capacity_bytes_per_s",
    "replication.share",
    "replication.hysteresis",
    "replication.max_step_factor",
    "replication.cooldown_s",
    "replication.produce_p99_ms",
    "replication.fetch_p99_ms",
    "replication.p99_rise_factor",
    "replication.manage",
    "replication.lease_s",
    "replication.remove_leftovers",
    "plan.offence_period_s",
    "plan.address_history_s",
    "plan.max_entities",
    "plan.default_quotas",
    "producer_ids.default_quota_per_s",
    "producer_ids.broker_heap_bytes",
    "producer_ids.max_heap_share",
    "producer_ids.max_heap_bytes",
    "producer_ids.limited_addresses",
    "producer_ids.protected_addresses",
    "producer_ids.manage_expiration",
)
ADDRESSES = ("producer_ids.limited_addresses", "producer_ids.protected_addresses")
"""Lists of addresses and networks. SQL finds an address in them by its hex digits."""
OWN_PRINCIPAL = "own_principal"
"""The setting with the principal of this conf's login, if conf has it."""


def of_conf(conf: Conf) -> Iterator[dict[str, Any]]:
    """Each of KEYS that has a value, as text, and what conf lists by name. None may be a secret."""
    for key in KEYS:
        value = _value(conf, key)
        if value is not None:
            yield {"setting": key, "setting_value": _text(value)}
    for column in COLUMNS:
        hides = conf.privacy.hides(column)
        yield {"setting": f"privacy.hides.{column}", "setting_value": _text(hides)}
    for network, rack in conf.racks.items():
        yield {"setting": f"racks.{network}", "setting_value": rack}
    for broker_id, capacity in conf.replication.brokers.items():
        yield {"setting": f"replication.brokers.{broker_id}", "setting_value": str(capacity)}
    own = conf.kafka.own_principal
    if own:
        yield {"setting": OWN_PRINCIPAL, "setting_value": own}
    # A principal may hold any character, so a list of them could not be split again.
    principals = {own: "own"} if own else {}
    for principal in conf.replication.cleanup_principals:
        principals.setdefault(principal, "conf")
    for principal, source in principals.items():
        yield {"setting": f"replication.cleanup.{principal}", "setting_value": source}
    for principal, source in conf.excluded_principals.items():
        yield {"setting": f"excluded.{principal}", "setting_value": source}


def _value(conf: Conf, key: str) -> object:
    value: object = attrgetter(key)(conf)
    if key in ADDRESSES and isinstance(value, list):
        return [" ".join((each, *bounds(each))) for each in value]
    return value


def _text(value: object) -> str:
    if isinstance(value, list):
        # Names of users may hold commas; those of certificates do.
        return "\n".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def of_probes(state: ClusterState) -> Iterator[Row | UnansweredPart]:
    """Whether the cluster accepts what stock Kafka refuses: a plan must not assume it.

    Only a user quota shows it: a broker accepts a config of its own by any name.
    """
    setting = PROBE + PRODUCER_IDS_RATE.key
    try:
        refusal = state.refusal_of_user_quota(PRODUCER_IDS_RATE.key)
    except UnansweredError as error:
        yield UnansweredPart(str(error), {"setting": setting})
        return
    yield {"setting": setting, "setting_value": REFUSED + refusal if refusal else "accepted"}
